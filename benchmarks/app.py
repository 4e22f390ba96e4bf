"""The app by the clock: from its command to its address, and from a dropped file of 1,000 rows to answer and page.

``python benchmarks/app.py`` writes ``benchmarks/app.json``; it needs chromium and its driver, and a machine with
nothing else to do. The button is pressed as soon as it is shown. Each repetition starts an app of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from selenium import webdriver

REPEATS = 3
ROWS = 1000
DROP = """
const files = new DataTransfer();
files.items.add(new File([arguments[0]], "predictions.csv"));
document.dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true}));
"""
SHOWN = "const found = document.querySelector(arguments[0]); return found !== null && found.checkVisibility();"


def table() -> str:
    """Labels and probabilities that are too extreme."""
    rng = np.random.default_rng(1)
    z = rng.normal(0, 1.2, ROWS)
    labels = rng.random(ROWS) < 1 / (1 + np.exp(-z))
    risks = 1 / (1 + np.exp(-1.4 * z))
    return "\n".join(["outcome,risk", *(f"{y:d},{p:.6f}" for y, p in zip(labels, risks, strict=True))])


def until(driver: webdriver.Chrome, css: str) -> float:
    """The time at which something is shown."""
    while not driver.execute_script(SHOWN, css):
        time.sleep(0.02)
    return time.perf_counter()


def visit(driver: webdriver.Chrome, text: str) -> dict[str, float]:
    """The seconds of one visit."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "calibrary", "app", "--port", "0", "--no-browser"]
    # an installed package has its bytecode
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    app = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        url = app.stdout.readline().strip()
        started = time.perf_counter()
        driver.get(url)
        until(driver, "#file")
        time.sleep(5)  # a person takes longer than this to find the file and to drop it
        dropped = time.perf_counter()
        driver.execute_script(DROP, text)
        preview = until(driver, "#measure")
        driver.execute_script("document.querySelector('#measure').click()")
        answer = until(driver, "#headline")
        page = until(driver, "#page")
        driver.switch_to.frame(driver.find_element("css selector", "#page"))
        page = max(page, until(driver, "[data-figure=reliability]"))
        driver.switch_to.default_content()
    finally:
        driver.get("about:blank")
        app.terminate()
        app.wait()
    return {
        "start": started - began,
        "preview": preview - dropped,
        "answer": answer - dropped,
        "page": page - dropped,
    }


def main() -> None:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        visits = [visit(driver, table()) for _ in range(REPEATS)]
    finally:
        driver.quit()
    seconds = {name: [round(one[name], 2) for one in visits] for name in visits[0]}
    for name, each in seconds.items():
        print(f"{name:8s} median {statistics.median(each):5.2f} s, of {each}")
    found = {"rows": ROWS, "cores": os.cpu_count(), "seconds": seconds}
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
