"""The JSON format of a report: its version, and a JSON Schema that documents every field."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

FORMAT = "calibrary report"
#: Increased if a reader of an older version would misunderstand the file; added fields do not increase it.
VERSION = 1


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every report in JSON fulfils."""
    text = (files("calibrary.reporting") / "report.schema.json").read_text(encoding="utf-8")
    return json.loads(text)
