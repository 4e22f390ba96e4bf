"""The one table of file name extensions."""

from __future__ import annotations

#: The extensions of every format; all readers and writers of rows take theirs from here.
ENDINGS = {
    "npz": (".npz",),
    "npy": (".npy",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "json": (".jsonl", ".ndjson", ".json"),
    "excel": (".xlsx", ".xlsm"),
    "old": (".xls",),
    "torch": (".pt", ".pth"),
    "csv": (".csv", ".tsv", ".tab", ".txt"),
}


def by_ending(*kinds: str) -> dict[str, str]:
    """The format of each extension of these formats."""
    return {ending: kind for kind in kinds for ending in ENDINGS[kind]}


#: What Arrow's datasets read in batches, of any size; of text, the files with commas alone.
IN_BATCHES = {**by_ending("parquet", "arrow"), ".csv": "csv"}
