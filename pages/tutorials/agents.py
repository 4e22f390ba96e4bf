# needs: mcp
# %% [markdown]
# # Tools for agents
#
# *Data: the confidences of the embedded language model, as a file.* `calibrary mcp FOLDER` answers an agent's questions about files over
# the Model Context Protocol: `pip install "calibrary[mcp]"`. Most clients take a piece of configuration such as this:
#
# ```
# {"mcpServers": {"calibrary": {"command": "calibrary", "args": ["mcp", "/home/me/predictions"]}}}
# ```
#
# Only files under the folders that are named can be read: paths that lead out of them, links, devices, pipes and files above
# `--most-mb` are refused before they are opened. Nothing is written. Below is a session of a real client.

# %%
import asyncio
import json
import os
import sys

import mcp

import calibrary as cal

data = cal.datasets.answers()
os.mkdir("data")
here = os.path.realpath("data")
with open("data/answers.csv", "w") as file:
    file.write("question,right,stated,shrunk\n")
    for question, y, p in zip(data.question, data.y_true, data.y_prob, strict=True):
        file.write(f"{question},{y},{p},{0.5 + 0.5 * (p - 0.5):.4f}\n")


async def session(*calls):
    """Ask these tools in turn, and show what the client sends and gets."""
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "calibrary", "mcp", "data"],
        env=dict(os.environ),
    )
    async with mcp.Client(mcp.stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
        print("tools:", ", ".join(tool.name for tool in tools))
        for name, arguments in calls:
            print(f"\n> {name} {json.dumps(arguments)}")
            answer = await client.call_tool(name, arguments)
            said = answer.content[0].text.replace(here, "/home/me/predictions")
            print(("error: " if answer.is_error else "") + said)


rows = {"label": "right", "unit": "question"}
file = {"path": "answers.csv", "prob": ["stated"], **rows}
asyncio.run(
    session(
        ("recommend", {"goal": "measure", "n": 600, "direction": True, "most": 2}),
        ("explain", {"id": "smece"}),
        ("report", {**file, "metrics": ["ece", "bs"]}),
        ("metric", {**file, "id": "smece"}),
        ("verdict", {**file, "condition": "ece<0.05"}),
        ("compare", {"paths": ["answers.csv"], "models": ["stated", "shrunk"], **rows}),
        ("metric", {"id": "ece", "path": "../../etc/passwd"}),
        ("metric", {"id": "ecee", "path": "answers.csv"}),
    )
)

# %% [markdown]
# Each answer is a sentence as text, for the model to read, and data as structured content, for the program: numbers with full precision,
# and of `report` the whole report, which fulfils the schema that the server offers at `calibrary://report.schema.json` and that
# `calibrary schema` prints.
