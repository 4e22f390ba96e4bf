"""Common file formats: COCO dictionaries and JSON files, YOLO text folders."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.base.numbers import is_absent
from calibrary.data.boxes import (
    Boxes,
    Pair,
    Sizes,
    as_xywh,
    box_area,
    category_names,
    checked_boxes,
    checked_scores,
    checked_sizes,
    joined,
    numbers,
    size_table,
)


def read_pair(ground_truth: Any, results: Any, unknown_images: str = "error") -> Pair:
    """Objects and detections from COCO dictionaries or files, YOLO folders, or two :func:`calibrary.boxes`."""
    if results is None:
        raise RefusedCallError("results is missing: pass the detections as the second argument")
    if isinstance(ground_truth, Boxes) != isinstance(results, Boxes):
        raise RefusedCallError("ground_truth and results must both be calibrary.boxes(...), or both COCO or YOLO input")
    if isinstance(ground_truth, Boxes):
        sides = ground_truth, results
    elif isinstance(ground_truth, str | os.PathLike) and Path(ground_truth).is_dir():
        sides = read_yolo(ground_truth, results)
    else:
        sides = read_coco(ground_truth, results)
    return joined(*sides, unknown_images)


# -- COCO -------------------------------------------------------------------------------------------


def read_coco(ground_truth: Any, results: Any) -> tuple[Boxes, Boxes]:
    """Both sides of a COCO pair: dictionaries, JSON files, or pycocotools' COCO objects."""
    truth, truth_name = _loaded(ground_truth, "ground_truth")
    if not isinstance(truth, Mapping):
        raise RefusedError(
            f"{truth_name} is a {type(truth).__name__}: COCO ground truth must be an object with 'annotations'"
        )
    found, name = _loaded(results, "results")
    if isinstance(found, Mapping):
        found = _part(found, "annotations", name)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise RefusedError(f"{name} is a {type(found).__name__}: COCO results must be a list of detections")
    return _coco_objects(truth, truth_name), _coco_detections(found, name)


def _coco_objects(truth: Mapping[str, Any], name: str) -> Boxes:
    images, kinds = _part(truth, "images", name), _part(truth, "categories", name)
    annotations = _part(truth, "annotations", name)
    where = f"{name} annotations"
    box = _coco_boxes(annotations, where)
    own_area = _field(annotations, "area", where, None)
    area = numbers([np.nan if a is None else a for a in own_area], f"{where}[{{}}].area".format)
    ids = _unique(_field(images, "id", f"{name} images"), f"{name} images")
    width, height = (_field(images, side, f"{name} images", None) for side in ("width", "height"))
    sizes = numbers(
        [(np.nan, np.nan) if None in size else size for size in zip(width, height, strict=True)],
        lambda i: f"{name} images[{i}] width and height",
        columns=2,
    )
    kind_ids = _unique(_field(kinds, "id", f"{name} categories"), f"{name} categories")
    return Boxes(
        _field(annotations, "image_id", where),
        _field(annotations, "category_id", where),
        box,
        crowd=_flags(annotations, "iscrowd", where),
        ignore=_flags(annotations, "ignore", where),
        area=np.where(np.isnan(area), box_area(box), area),
        images=tuple(ids),
        sizes={id: (size[0], size[1]) for id, size in zip(ids, sizes.tolist(), strict=True)},
        categories={id: str(kind.get("name", id)) for id, kind in zip(kind_ids, kinds, strict=True)},
        image_place=f"{where}[{{}}].image_id".format,
        category_place=f"{where}[{{}}].category_id".format,
    )


def _coco_detections(found: Sequence[Any], name: str) -> Boxes:
    score = numbers(_field(found, "score", name), f"{name}[{{}}].score".format)
    return Boxes(
        _field(found, "image_id", name),
        _field(found, "category_id", name),
        _coco_boxes(found, name),
        checked_scores(score, f"{name}[{{}}].score".format),
        image_place=f"{name}[{{}}].image_id".format,
        category_place=f"{name}[{{}}].category_id".format,
    )


def _coco_boxes(records: Sequence[Any], where: str) -> Any:
    place = f"{where}[{{}}].bbox".format
    return checked_boxes(numbers(_field(records, "bbox", where), place, columns=4), place)


def _flags(records: Sequence[Any], key: str, where: str) -> Any:
    """True or False for each record: 0 and 1, also as text, False and True; None and a missing value are False."""
    words = {"0": False, "1": True, "false": False, "true": True, "none": False}
    flags = [words.get(str(flag).lower()) for flag in _field(records, key, where, 0)]
    if None in flags:
        i = flags.index(None)
        raise RefusedError(f"{where}[{i}].{key} = {records[i][key]!r} is neither 0 nor 1")
    return np.array(flags, dtype=bool)


def _loaded(source: Any, argument: str) -> tuple[Any, str]:
    """The content and its name in errors: the file name, or otherwise the argument."""
    if not isinstance(source, str | os.PathLike):
        return getattr(source, "dataset", source), argument  # pycocotools' COCO object stores its dictionary there
    path = Path(source)
    try:
        return json.loads(path.read_text(encoding="utf-8")), path.name
    except FileNotFoundError:
        raise FileNotFoundError(f"{argument}: the file {str(path)!r} does not exist") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(f"{path.name} is not valid JSON: {error.msg} at {where}") from error
    except UnicodeDecodeError as error:
        raise RefusedError(f"{path.name} is not a JSON text file: {error.reason} at byte {error.start}") from error
    except (RecursionError, ValueError) as error:  # brackets within brackets; numbers of thousands of digits
        raise RefusedError(
            f"{path.name} is nested too deeply, or contains too long a number, for COCO's JSON"
        ) from error


def _part(content: Mapping[str, Any], key: str, name: str) -> Sequence[Any]:
    if key not in content:
        raise RefusedError(f"{name} has no {key!r}: it holds {', '.join(map(repr, list(content)[:6])) or 'nothing'}")
    records = content[key]
    if not isinstance(records, Sequence) or isinstance(records, str):
        raise RefusedError(f"{name} {key!r} is a {type(records).__name__}: it must be a list")
    return records


_REQUIRED = object()


def _field(records: Sequence[Any], key: str, where: str, default: Any = _REQUIRED) -> list[Any]:
    try:
        if default is _REQUIRED:
            return [record[key] for record in records]
        return [record.get(key, default) for record in records]
    except (KeyError, TypeError, AttributeError, IndexError):
        for i, record in enumerate(records):
            if not isinstance(record, Mapping):
                raise RefusedError(f"{where}[{i}] is a {type(record).__name__}: it must be an object") from None
            if key not in record:
                held = ", ".join(map(repr, list(record)[:8])) or "nothing"
                raise RefusedError(f"{where}[{i}] has no {key!r}: it holds {held}") from None
        raise


def _unique(ids: list[Any], where: str) -> list[Hashable]:
    seen: set[Hashable] = set()
    for i, id in enumerate(ids):
        if not isinstance(id, Hashable):
            raise RefusedError(f"{where}[{i}].id = {id!r} is not an identifier: use a number or a text")
        if is_absent(id):
            raise RefusedError(f"{where}[{i}].id = {id!r} is missing: use a number or a text")
        if id in seen:
            raise RefusedError(f"{where}[{i}].id = {id!r} occurs twice: identifiers must be unique")
        seen.add(id)
    return ids


# -- YOLO -------------------------------------------------------------------------------------------


def read_yolo(labels: Any, results: Any, *, names: Any = None, image_size: Any = None) -> tuple[Boxes, Boxes]:
    """Read objects and detections from two folders of YOLO text files, one file per image.

    Lines are ``class cx cy w h`` in ``labels`` and ``class cx cy w h score`` in ``results``, relative to the image.
    Segmentation outlines (``class x1 y1 x2 y2 x3 y3 ...``, in ``results`` with a score at the end) are replaced by
    their bounding boxes. An image without objects has an empty file or none. Pass both to the matching:
    ``match_detections(*read_yolo(a, b))``.

    Parameters
    ----------
    labels, results : paths of folders
    names : list or {class number: name}, optional
        All classes. By default the classes that occur.
    image_size : (width, height) or {file stem: (width, height)}, optional
        Gives areas in pixels, which ``area_range`` needs. Overlap and location do not depend on the image size.
    """
    truth, found = _text_files(labels, "labels"), _text_files(results, "results")
    images = tuple(sorted({*truth, *found}))
    if not images:
        raise RefusedError(f"{os.fspath(labels)!r} contains no .txt files: YOLO has one per image")
    sizes = checked_sizes(image_size)
    listed = category_names(dict(enumerate(names)) if isinstance(names, list | tuple) else names)
    return (
        _yolo_boxes(truth, sizes, scored=False, images=images, categories=listed),
        _yolo_boxes(found, sizes, scored=True),
    )


def _text_files(folder: Any, argument: str) -> dict[str, Path]:
    if not Path(folder).is_dir():
        raise RefusedError(f"{argument}: {os.fspath(folder)!r} is not a folder of YOLO text files")
    return {path.stem: path for path in sorted(Path(folder).glob("*.txt"))}


def _yolo_boxes(files: Mapping[str, Path], sizes: Sizes | None, *, scored: bool, **listed: Any) -> Boxes:
    image: list[Hashable] = []
    rows: list[list[float]] = []
    places: list[str] = []
    for stem, path in files.items():
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                places.append(f"{path.name} line {number}")
                rows.append(_yolo_line(line, places[-1], scored))
                image.append(stem)
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 5 + scored)
    box = checked_boxes(as_xywh(table[:, 1:5], "cxcywh"), places.__getitem__)
    if sizes is not None:
        size = size_table(image, sizes)
        unknown = np.flatnonzero(np.isnan(size[:, 0]))
        if len(unknown):
            raise RefusedError(
                f"image_size has no entry for {image[unknown[0]]!r}: pass width and height of every image"
            )
        box = box * np.tile(size, 2)
    return Boxes(
        image,
        table[:, 0].astype(int).tolist(),
        box,
        checked_scores(table[:, 5], lambda i: f"the score in {places[i]}") if scored else None,
        sizes=(1.0, 1.0) if sizes is None else sizes,
        relative=sizes is None,
        image_place=lambda i: f"the image of {places[i]}",
        category_place=lambda i: f"the class in {places[i]}",
        **listed,
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"{path.name} is not a text file of numbers: {error.reason} at byte {error.start}"
        ) from error


#: Larger class numbers cannot be distinguished from their neighbours as floats.
_LARGEST_CLASS = 2**53


def _yolo_line(line: str, place: str, scored: bool) -> list[float]:
    """Class, box and (if ``scored``) score of a line with a box or an outline."""
    wanted = "class cx cy w h score" if scored else "class cx cy w h"
    try:
        values = [float(word) for word in line.split()]
    except ValueError:
        values = []
    n = len(values) - scored  # without the score
    if n < 5 or not values[0].is_integer() or not 0 <= values[0] < _LARGEST_CLASS:
        raise RefusedError(f"{place} is {_cut(line)!r}: a YOLO line must be the numbers '{wanted}'")
    if n == 5 or (
        n == 6 and values[-1].is_integer() and (values[-1] > 1 or not scored)
    ):  # possibly with the id of a track
        return values[: 5 + scored]
    if n < 7 or n % 2 == 0:
        raise RefusedError(
            f"{place} is {_cut(line)!r}, {len(values)} numbers: a YOLO line must be '{wanted}', or an outline 'class "
            f"x1 y1 x2 y2 x3 y3 ...{' score' if scored else ''}' of three points or more"
        )
    x, y = np.array(values[1:n:2]), np.array(values[2:n:2])
    width, height = np.ptp(x), np.ptp(y)
    return [values[0], x.min() + width / 2, y.min() + height / 2, width, height, *values[n:]]


def _cut(line: str) -> str:
    shown = line.strip()
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
