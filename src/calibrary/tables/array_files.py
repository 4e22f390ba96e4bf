"""Arrays by name: NPZ files of NumPy and tensors of torch, read without running code."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.errors import extra
from calibrary.tables import sources
from calibrary.tables.sources import InputError, as_file, in_gib
from calibrary.tables.table import MOST_COLUMNS, Columns, FileTable


def open_npz(name: str, content: Path | bytes) -> FileTable:
    return _of_arrays(name, arrays_in(name, content))


def arrays_in(name: str, content: Path | bytes) -> dict[str, Any]:
    """The arrays of an NPZ file by their names."""
    with as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an NPZ file: write one with numpy.savez(file, label=..., prob=...)")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            size = sum(info.file_size for info in packed.infolist())
            stored = sum(info.compress_size for info in packed.infolist())
        if size > max(sources.MOST_BYTES, stored):
            raise InputError(
                f"{name} unpacks to more than {in_gib(sources.MOST_BYTES)}: save it uncompressed, with numpy.savez"
            )
        file.seek(0)
        arrays: dict[str, Any] = {}
        # allow_pickle stays off, because a pickle in a downloaded file could run any code
        with np.load(file, allow_pickle=False) as found:
            for key in found.files:
                try:
                    arrays[key] = found[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise InputError(
                        f"{name} cannot be read as NPZ: {key!r} holds Python objects, which are not opened because "
                        "they can run code; save plain numbers or text"
                    ) from None
    return arrays


def _of_arrays(name: str, arrays: Mapping[str, Any]) -> FileTable:
    columns: Columns = {}
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{key!r} in {name} is not an array: save plain arrays of numbers or text")
        if array.ndim == 2 and array.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"{key!r} in {name} has {array.shape[1]:,} columns: one row per prediction is expected (is it "
                "transposed?)"
            )
        if array.ndim == 2:
            columns.update({f"{key}{j}": array[:, j] for j in range(array.shape[1])})
        elif array.ndim == 1:
            columns[key] = array
    if not columns:
        raise InputError(f"{name} holds no one- or two-dimensional arrays")
    return FileTable(name, tuple(columns), lambda wanted: {c: columns[c] for c in wanted})


def open_torch(name: str, content: Path | bytes) -> FileTable:
    with extra("torch", "reading tensors"):
        import torch

    with as_file(content) as file:
        try:
            # weights_only, because a pickle in a downloaded file could run any code
            found = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise InputError(
                f"{name} cannot be read as tensors: save a dictionary of them, "
                "torch.save({'label': y, 'logits': z}, file)"
            ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"{name} holds tensors without names: save a dictionary, torch.save({{'label': y, 'logits': z}}, file)"
        )
    tensors = {str(k): v for k, v in found.items() if isinstance(v, torch.Tensor)}
    return _of_arrays(
        name, {k: (v.float() if v.dtype == torch.bfloat16 else v).detach().numpy() for k, v in tensors.items()}
    )


def refuse_npy(name: str, content: Path | bytes) -> FileTable:
    raise InputError(
        f"{name} holds one array without a name: save named arrays with numpy.savez(file, label=..., prob=...)"
    )
