"""Simulations of metrics where the true calibration is known: ``calibrary study run | show | figures | mine``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from calibrary.base.errors import suggest
from calibrary.base.numbers import number, percent
from calibrary.cli.large import require_rows
from calibrary.cli.shared import err, folder_of, listed, load, out, plain, reading, table_of, taking, written
from calibrary.lookup import catalogue
from calibrary.lookup.study_findings import shown, stored
from calibrary.study.result import StudyResult, rows_of
from calibrary.tables.sources import InputError

app = typer.Typer(help="Simulate metrics on data whose true calibration is known.", no_args_is_help=True)


@app.command()
@taking("study-run")
def run(given: Any) -> None:
    """Run or continue a study: `calibrary study run --preset quick`. Ctrl-C loses at most one result file."""
    preset = given.preset
    from calibrary import study

    folder = given.output or Path(f"study-{preset}")
    with _bar(preset, given.quiet) as watch:
        found = study.run(
            preset, metrics=_chosen(given.metrics, given.function), worlds=given.worlds, n=given.n, draws=given.draws,
            seed=given.seed, out=folder, workers=given.workers, part=given.part, watch=watch,
        )  # fmt: skip
    path = folder / "study.json.gz"
    found.save(path)
    if not given.quiet:
        out.print(plain(str(found)), highlight=False, soft_wrap=True)
        written(path)


@app.command()
@taking("study-show")
def show(given: Any) -> None:
    """Show the results for all metrics or for one: `calibrary study show smece`."""
    found = _read(given.source)
    if given.metric is None:
        out.print(_overview(found, given.n or (1000 if 1000 in found.sizes else found.sizes[0])))
        out.print(plain(_HEADINGS), highlight=False, soft_wrap=True)
        out.print(plain(_about(found)), highlight=False, soft_wrap=True)
        return
    for name in _names(found, given.metric):
        out.print(f"[bold]{plain(name)}[/]", highlight=False)
        out.print(_of_one(found, name))
        for line in _lines(found, name):
            out.print(plain(line), highlight=False, soft_wrap=True)


@app.command()
@taking("study-figures")
def figures(given: Any) -> None:
    """Draw the figures of a study: `calibrary study figures -o figures`."""
    from calibrary.study.figures import FIGURES

    folder, kind = folder_of(given.output), given.kind
    found = _read(given.source)
    for name, draw in FIGURES.items():
        drawn = draw(found)
        if drawn is not None:
            path = folder / f"{name}.{kind}"
            drawn.savefig(path, dpi=150)
            written(path)


@app.command()
@taking("study-mine")
def mine(given: Any) -> None:
    """Simulate how well metrics work on predictions like yours: `calibrary study mine predictions.csv`."""
    from calibrary import study

    loaded = load(given.file, given.quiet, **reading(given))
    require_rows(loaded, "study mine")
    with _bar("mine", given.quiet) as watch:
        how: dict[str, Any] = {"lens": given.lens, "draws": given.draws, "seed": given.seed, "watch": watch}
        found = study.mine(loaded.predictions(), metrics=_chosen(given.metrics, given.function), **how)
    out.print(plain(str(found)), highlight=False, soft_wrap=True)


# -- selection ----------------------------------------------------------------------------------------


def _chosen(metrics: list[str] | None, functions: list[str] | None) -> dict[str, Any] | None:
    """The chosen metrics and the user's functions; None selects everything."""
    if not metrics and not functions:
        return None
    named: dict[str, Any] = {catalogue[name].key: name for name in listed(metrics) or ()}
    return {**named, **dict(_function(text) for text in functions or ())}


def _function(text: str) -> tuple[str, Callable[..., Any]]:
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not name or not path.is_file():
        raise InputError(f"--function {text}: pass file.py:name, with a file that exists")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, name, None)):
        raise InputError(f"--function {text}: {file} has no function {name!r}: {suggest(name, vars(module))}")
    return name, getattr(module, name)


def _read(source: Path | None) -> StudyResult:
    if source is None:
        return StudyResult(stored())
    return StudyResult.load(source / "study.json.gz" if source.is_dir() else source)


def _names(found: StudyResult, metric: str) -> list[str]:
    """The values of a metric in the study, by any of its names."""
    if metric in found.names:
        return [metric]
    id = catalogue[metric].id
    if id in found.found["left_out"]:
        raise InputError(f"{id} is not in the study: {found.found['left_out'][id]}")
    names = [name for name, of in found.found["numbers"].items() if of["metric"] == id and of["kind"] == "metric"]
    if not names:
        raise InputError(f"{id} is not in this study: run one with --metrics {id}")
    return names


# -- what is shown --------------------------------------------------------------------------------------


_HEADINGS = (
    "null: mean on calibrated models; power: share of miscalibrated samples detected at the 5% level; rare, wave: "
    "power for rare events and for curves with ten periods; same, across: share of pairs of models in the right "
    "order, with the same and with different distributions of confidence; rho L1, dist.: rank correlation with the L1 "
    "error and with the distance from calibration; gaming: smallest error of a misstated set of probabilities divided "
    "by the error of the true ones"
)


def _overview(found: StudyResult, n: int) -> Table:
    rows = found.found["sizes"].get(str(n))
    if rows is None:
        raise InputError(f"--n {n}: the study has {', '.join(map(str, found.sizes))}")
    head = ("metric", "null", "power", "rare", "wave", "same", "across", "rho L1", "dist.", "gaming")
    lines = []
    for name in sorted(rows, key=lambda name: -(rows[name].get("across") or 0.0)):
        row, whole = rows[name], found.found["numbers"][name]
        limit, law, family = whole["limit"], row.get("power_by_law") or {}, row.get("power_by_family") or {}
        shares = row.get("power"), law.get("rare"), family.get("wave 10"), row.get("within"), row.get("across")
        ranks = limit.get("rho_l1"), limit.get("rho_distance"), whole.get("lie")
        lines.append([name, shown(name, row.get("null")), *map(percent, shares), *map(number, ranks)])
    return table_of(head, lines, padding=(0, 1, 0, 0))


def _of_one(found: StudyResult, name: str) -> Table:
    head = ("N", "null", "null sd", "power", "same", "across", "bias/sd", "ms", "draws")
    lines = []
    for n, row in rows_of(found, name):
        seconds = row.get("seconds")
        lines.append(
            (
                f"{n:,}", shown(name, row.get("null")), number(row.get("null_sd")), percent(row.get("power")),
                percent(row.get("within")), percent(row.get("across")), number(row.get("bias_over_sd")),
                "" if seconds is None else f"{1000 * seconds:.2g}", f"{row['draws']} / {row['null_draws']}",
            )
        )  # fmt: skip
    return table_of(head, lines)


def _lines(found: StudyResult, name: str) -> Iterator[str]:
    whole = found.found["numbers"][name]
    limit = whole["limit"]
    if limit:
        yield (
            f"with {limit['n']:,} rows: rank correlation {number(limit['rho_l1'])} with the L1 error and "
            f"{number(limit['rho_distance'])} with the distance from calibration; a calibrated model shows "
            f"{shown(name, limit['null'])}"
        )
    if whole.get("lie") is not None:
        yield (
            f"the best of three misstated sets of probabilities has {number(whole['lie'])} times the error of the "
            "true ones"
        )
    if whole["largest_n"] != max(found.sizes) and not whole.get("own_worlds"):
        yield f"computed for up to {whole['largest_n']:,} rows only, because of its cost"
    for n, by in found.found["tests"].items():
        if whole["metric"] in by:
            test = by[whole["metric"]]
            yield (
                f"the metric's own test at N = {n} rejects {percent(test['level'])} of calibrated and "
                f"{percent(test['power'])} of miscalibrated samples"
            )


def _about(found: StudyResult) -> str:
    about = found.about
    missing = about["of"] - about["shards"]
    return (
        f"study {about['preset']!r} of calibrary {about['version']}, seed {about['seed']}: "
        f"{len(found.found['worlds'])} simulated settings, N = {', '.join(f'{n:,}' for n in found.sizes)}"
        + (f"; {missing} result files are missing" if missing else "")
    )


@contextmanager
def _bar(what: str, quiet: bool) -> Iterator[Callable[[Any], None] | None]:
    """A progress bar with the remaining CPU time, shown only on a terminal."""
    if quiet or not err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(f"study {what}", total=None, left="measuring the computing time of each metric")

        def watch(progress: Any) -> None:
            left = progress.seconds_left
            words = f"{left / 60:.0f} min" if left >= 90.0 else f"{left:.0f} s"
            now = f"{progress.done}/{progress.total} · {words} of CPU left · {progress.now}"
            bar.update(task, total=progress.total, completed=progress.done, left=plain(now))

        yield watch
