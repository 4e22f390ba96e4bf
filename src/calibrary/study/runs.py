"""Run a study: measure computing times, compute every shard (result file), and summarize."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from calibrary._version import __version__
from calibrary.base.errors import one_of, whole
from calibrary.data.predictions import predictions
from calibrary.inference.draw.waiting import ProgressLine, in_sight, progress_of
from calibrary.study.measures import FEWEST_NULLS, Readings
from calibrary.study.panel import Number, binary_panel, class_panel, test_panel
from calibrary.study.presets import Preset, Size
from calibrary.study.presets import preset as preset_named
from calibrary.study.real import halves_agree
from calibrary.study.result import StudyResult, result_of
from calibrary.study.shards import Job, Shard, made
from calibrary.study.study_files import KeptPlan, read_part, write_part
from calibrary.study.world import AnyWorld, ClassWorld, World

#: The smallest share of samples on which a slow metric is computed.
_LEAST_SHARE = 1 / 12
#: The file with the agreement of halves of real predictions, and the number of splits.
_REAL, _SPLITS = "real.json", 5
#: The factor of slowness above which a metric is not timed, and the seconds allowed for compiling.
_HOPELESS, _COMPILING = 6.0, 5.0


#: Seconds by number of rows and metric; and the numbers of one kind of data.
Times = dict[str, dict[str, float]]
Panel = Sequence[Number]


class Progress(NamedTuple):
    """The progress of a run: numbers of finished and of all shards, and the estimated remaining CPU seconds."""

    done: int
    total: int
    seconds_left: float
    now: str


@dataclass(frozen=True)
class StudyPlan:
    """The plan of a run: the preset with the user's changes, the metrics, and their computing times.

    ``seconds`` holds the computing times by number of rows and metric, for two classes and for each number of several
    classes. They are measured once and stored with the shards, so that continued runs and other machines draw the same.
    """

    preset: Preset
    seed: int
    binary: tuple[Number, ...]
    several: tuple[Number, ...]
    tests: tuple[Number, ...]
    seconds: Mapping[str, Mapping[str, Mapping[str, float]]]

    def numbers(self, world: AnyWorld) -> tuple[Number, ...]:
        """The metrics that are computed in a setting."""
        return self.several if isinstance(world, ClassWorld) else (*self.binary, *self.tests)

    def jobs(self) -> list[Job]:
        """All shards, with sample sizes in the order of the preset."""
        found = []
        for size in self.preset.sizes:
            lies = self.preset.lies if size.n in self.preset.lies_at else ()
            found += [self._job(world, size) for world in (*self.preset.worlds, *lies)]
        for size in self.preset.class_sizes:
            found += [self._job(world, size) for world in self.preset.class_worlds]
        return found

    def cost(self, job: Job) -> float:
        """The expected CPU seconds of a shard."""
        seconds = self.seconds.get(_kind(job.world), {}).get(str(job.n), {})
        return sum(draws * seconds.get(name, 0.0) for name, draws in job.draws.items())

    def _job(self, world: AnyWorld, size: Size) -> Job:
        seconds = self.seconds.get(_kind(world), {}).get(str(size.n), {})
        null = world.family == "calibrated" and world.report == "honest"
        draws, least = (size.null_draws, FEWEST_NULLS) if null else (size.draws, 1)
        wanted = {name: _draws_of(seconds[name], draws, least, size) for name in seconds if seconds[name] <= size.most}
        if world.report != "honest" or world.law_name not in self.preset.tests_in:
            wanted = {name: n for name, n in wanted.items() if not name.startswith("p of ")}
        return Job(world, size.n, wanted)


#: Its name up to 0.3, which pickles have.
Plan = StudyPlan


def _draws_of(seconds: float, draws: int, least: int, size: Size) -> int:
    """The number of samples of a slow metric, reduced to the time of a fast one, down to a minimum."""
    share = 1.0 if seconds <= size.quick else max(_LEAST_SHARE, size.quick / seconds)
    return min(draws, max(least, round(share * draws)))


def _kind(world: AnyWorld) -> str:
    return f"{world.k} classes" if isinstance(world, ClassWorld) else "binary"


def run(
    preset: str | Preset = "quick",
    *,
    metrics: Any = None,
    worlds: Sequence[str | AnyWorld] | None = None,
    n: int | Sequence[int] | None = None,
    draws: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    workers: int = 1,
    part: str | tuple[int, int] | None = None,
    watch: Callable[[Progress], None] | None = None,
    progress: bool | None = None,
) -> StudyResult:
    """Run a study of metrics on simulated data with known true error.

    Parameters
    ----------
    preset : str or Preset
        "quick", "standard", "full"; "temperature", "objectives", "correlation" and "construction" are studies of
        the review.
    metrics : str, callable, list of either, or mapping of names to either, optional
        Only these; a function of your own is called with labels and confidences.
    worlds : sequence of names of laws or curves, or of worlds, optional
        Only these worlds, or only those of these laws or curves. Calibrated settings are always included, for
        comparison.
    n : int or list of int, optional
        Only these numbers of rows.
    draws : int, optional
        Samples of every world (four times as many of calibrated ones) in place of the preset's.
    seed : int
        The same seed gives the same samples for any choice of metrics.
    out : path, optional
        Folder for the shards: a second call continues where the first stopped, and computes new metrics on the same
        samples. Without a folder nothing is stored.
    workers : int
        Number of processes.
    part : "i/n"
        Compute only every n-th shard, starting with the i-th; the folders of several machines can be merged.
    watch : callable
        Called after every shard with a :class:`Progress`.
    progress : bool, optional
        ``False`` shows no progress. Default: after two seconds, in a terminal or a notebook, unless ``watch`` is given.

    Examples
    --------
    >>> from calibrary import study
    >>> def gap(y, p):
    ...     return abs(y.mean() - p.mean())
    >>> found = study.run("quick", metrics=["ece", gap], worlds=["wide"], n=100, draws=4)
    >>> sorted(found.names)
    ['ece', 'gap']
    """
    chosen = _changed(preset_named(preset) if isinstance(preset, str) else preset, worlds, n, draws)
    seed, workers = whole("seed", seed, 0), whole("workers", workers)
    with _folder(out) as folder:
        plan = _planned(chosen, metrics, seed, folder)
        mine = plan.jobs() if part is None else _part(plan.jobs(), part)
        line = ProgressLine("study") if watch is None and progress is not False and in_sight() else None
        with progress_of("study", False):  # no lines of the parts
            for _ in _make(plan, mine, folder, workers, watch if line is None else _share_on(line)):
                pass
        if line is not None:
            line.clear()
        if chosen.real and metrics is None and part is None and not (folder / _REAL).exists():
            write_part(folder / _REAL, "agreement", halves_agree(splits=_SPLITS, seed=seed))
        return _gathered(plan, folder)


def _share_on(line: ProgressLine) -> Callable[[Progress], None]:
    """A function that shows the finished share of the computing time: shards of many rows count for more."""
    line.part(1.0)
    first: list[float] = []

    def watch(now: Progress) -> None:
        first.append(now.seconds_left * now.total / max(now.total - 1, 1))
        line.at(1.0 - now.seconds_left / first[0] if first[0] > 0.0 else now.done / now.total)

    return watch


def gather(out: str | Path, preset: str | Preset | None = None, *, metrics: Any = None) -> StudyResult:
    """The result from the shards of a folder, even of a stopped run or of merged parts.

    Parameters
    ----------
    out : path
        The folder.
    preset : str or Preset, optional
        The preset, if it is not one of the library.
    metrics : optional
        As in :func:`run`, if your own functions were studied.
    """
    folder = Path(out)
    path = folder / "plan.json"
    if not path.exists():
        raise ValueError(f"{folder} contains no study: it has no plan.json")
    kept = read_part(path, "plan", KeptPlan)
    chosen = preset_named(preset or kept.preset) if not isinstance(preset, Preset) else preset
    return _gathered(_planned(chosen, metrics, kept.seed, folder, probe=False), folder)


def _gathered(plan: StudyPlan, folder: Path) -> StudyResult:
    jobs = plan.jobs()
    there = [job for job in jobs if (folder / job.file).exists()]
    truths = _truths([job.world for job in there], folder)
    read = [Readings(job.world, job.n, Shard.load(folder / job.file), truths[job.world.name]) for job in there]
    about = {
        "version": __version__,
        "preset": plan.preset.name,
        "seed": plan.seed,
        "shards": len(there),
        "of": len(jobs),
        "missing": dict(Counter(f"{'several' if isinstance(job.world, ClassWorld) else 'two'} classes, N = {job.n:,}"
            for job in jobs if job not in there)),
        "draws": {f"{'several' if size in plan.preset.class_sizes else 'two'} classes, N = {size.n:,}":
                  [size.draws, size.null_draws]
                  for size in (*plan.preset.sizes, *plan.preset.class_sizes)},
        "cpu_seconds": round(sum(float(r.shard.seconds @ r.shard.drawn) for r in read), 1),
    }  # fmt: skip
    found = result_of(read, (*plan.binary, *plan.tests, *plan.several), about)
    real = folder / _REAL
    if not real.exists():
        return found
    return StudyResult({**found.found, "real": read_part(real, "agreement", dict[str, dict[str, float]])})


def _changed(preset: Preset, worlds: Any, n: Any, draws: int | None) -> Preset:
    if worlds is not None:
        own = tuple(w for w in worlds if not isinstance(w, str))
        names = [w for w in worlds if isinstance(w, str)]
        known = {*(x for w in preset.worlds for x in _names(w)), *(x for w in preset.class_worlds for x in _names(w))}
        for name in names:
            one_of("worlds", name, known)
        preset = replace(
            preset,
            worlds=(*_only(preset.worlds, names), *(w for w in own if isinstance(w, World))),
            class_worlds=(*_only(preset.class_worlds, names), *(w for w in own if isinstance(w, ClassWorld))),
        )
    if n is not None:
        rows = {whole("n", each, 10) for each in ([n] if isinstance(n, int) else n)}
        sizes = {size.n: size for size in preset.sizes}
        nearest = [min(preset.sizes, key=lambda size: abs(size.n - each)) for each in rows - set(sizes)]
        added = tuple(replace(size, n=each) for size, each in zip(nearest, rows - set(sizes), strict=True))
        preset = replace(
            preset,
            sizes=(*(s for s in preset.sizes if s.n in rows), *added),
            class_sizes=tuple(s for s in preset.class_sizes if s.n in rows),
        )
    if draws is not None:
        draws = whole("draws", draws, 2)
        many = {"draws": draws, "null_draws": 4 * draws}
        of_two, of_classes = (tuple(replace(s, **many) for s in each) for each in (preset.sizes, preset.class_sizes))
        preset = replace(preset, sizes=of_two, class_sizes=of_classes)
    return preset


def _names(world: AnyWorld) -> tuple[str, ...]:
    return world.name, world.law_name, world.name.removeprefix(f"{world.law_name}, "), world.family


def _only(worlds: Iterable[Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The settings with one of these names, and the calibrated ones of the same distributions."""
    if not names:
        return ()
    named = [w for w in worlds if set(names) & set(_names(w))]
    laws = {w.law_name for w in named}
    return tuple(w for w in worlds if w in named or (w.family == "calibrated" and w.law_name in laws))


def _part(jobs: list[Job], part: str | tuple[int, int]) -> list[Job]:
    try:
        i, of = (int(x) for x in part.split("/")) if isinstance(part, str) else part
    except ValueError:
        raise ValueError(f"part={part!r}: pass i/n, such as 3/16") from None
    if not 1 <= i <= of:
        raise ValueError(f"part={part!r}: the first number must be from 1 to the second")
    return jobs[i - 1 :: of]


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    if out is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def _truths(worlds: Iterable[AnyWorld], folder: Path) -> dict[str, dict[str, float]]:
    """The true errors of every setting, stored in the folder because each needs a linear programme."""
    path = folder / "truths.json"
    kept: dict[str, dict[str, float]] = read_part(path, "truths", dict[str, dict[str, float]]) if path.exists() else {}
    for world in worlds:
        if world.name not in kept:
            truth = world.truth()
            kept[world.name] = truth if isinstance(truth, dict) else truth._asdict()
    write_part(path, "truths", kept)
    return kept


# -- the plan ---------------------------------------------------------------------------------------


def _planned(preset: Preset, metrics: Any, seed: int, folder: Path, probe: bool = True) -> StudyPlan:
    """The plan stored in the folder, with computing times of new metrics added."""
    path = folder / "plan.json"
    kept = read_part(path, "plan", KeptPlan) if path.exists() else KeptPlan(preset.name, seed, {})
    for what, there, value in (("preset", kept.preset, preset.name), ("seed", kept.seed, seed)):
        if there != value:
            raise ValueError(f"{folder} contains a study with {what}={there!r}, not {value!r}: name another folder")
    binary = tuple(binary_panel(metrics))
    tests = tuple(test_panel(metrics)) if preset.tests_at else ()
    several = tuple(class_panel(metrics)) if preset.class_worlds else ()
    seconds: dict[str, Times] = kept.seconds
    if probe:
        try:
            _probe_all(seconds, preset, binary, tests, several)
        finally:  # times that were measured before an interruption are not measured again
            write_part(path, "plan", kept)
    wanted = {number.name for number in (*binary, *tests, *several)}
    mine = {
        kind: {rows: {name: s for name, s in by.items() if name in wanted} for rows, by in sizes.items()}
        for kind, sizes in seconds.items()
    }
    return StudyPlan(preset, seed, binary, several, tests, mine)


def _probe_all(seconds: dict[str, Times], preset: Preset, binary: Panel, tests: Panel, several: Panel) -> None:
    usual = World("wide", "temperature 0.8")
    _probe(seconds.setdefault("binary", {}), binary, usual, preset.sizes)
    _probe(seconds["binary"], tests, usual, [size for size in preset.sizes if size.n in preset.tests_at])
    fewer: Times = {}
    for k in sorted({world.k for world in preset.class_worlds}):
        here = seconds.setdefault(f"{k} classes", {})
        _probe(here, several, ClassWorld(k, 1.3), preset.class_sizes, fewer)
        fewer = here


def _probe(seconds: Times, numbers: Panel, world: AnyWorld, sizes: Sequence[Size], fewer: Times | None = None) -> None:
    """Measure the computing time of each metric at each sample size, from small to large, while it may be affordable.

    ``fewer`` holds the times for fewer classes; more classes never take less time.
    """
    last: dict[str, tuple[int, float]] = {}
    for size in sorted(sizes, key=lambda size: size.n):
        known = seconds.setdefault(str(size.n), {})
        sample = world.sample(size.n, 0)
        for number in numbers:
            if number.name not in known:
                n, before = last.get(number.name, (size.n, 0.0))
                least = max(before * size.n / n, (fewer or {}).get(str(size.n), {}).get(number.name, 0.0))
                # some metrics use a faster algorithm for many rows: only very slow ones are skipped
                known[number.name] = least if least > _HOPELESS * size.most else _cost(number, sample, size)
            last[number.name] = (size.n, known[number.name])


def _cost(number: Number, sample: tuple[Any, Any], size: Size) -> float:
    """CPU seconds of one evaluation; a slow first one, which may include compiling, is repeated."""
    found = 0.0
    for _ in range(2):
        p = predictions(*sample)
        started = time.process_time()
        number(p)
        found = time.process_time() - started
        if found <= size.quick or found > max(_HOPELESS * size.most, _COMPILING):
            break
    return round(found, 5)


# -- the shards -------------------------------------------------------------------------------------


def _make(
    plan: StudyPlan, jobs: list[Job], folder: Path, workers: int, watch: Callable[[Progress], None] | None
) -> Iterator[tuple[str, Shard]]:
    """Compute the shards in one or several processes; finished shards are kept after an interruption."""
    left = sum(plan.cost(job) for job in jobs)
    for done, (job, shard) in enumerate(_made(plan, jobs, folder, workers), 1):
        left -= plan.cost(job)
        if watch is not None:
            watch(Progress(done, len(jobs), max(left, 0.0), f"{job.world.name}, N = {job.n:,}"))
        yield job.file, shard


def _made(plan: StudyPlan, jobs: list[Job], folder: Path, workers: int) -> Iterator[tuple[Job, Shard]]:
    if workers == 1:
        for job in jobs:
            yield job, made(job, plan.numbers(job.world), plan.seed, folder)
        return
    # forked, so that a user's functions need not be importable
    context = get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_remember, initargs=(plan, jobs)) as pool:
        waiting = {pool.submit(_made_here, i, folder): job for i, job in enumerate(jobs)}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


_HERE: dict[str, Any] = {}


def _remember(plan: StudyPlan, jobs: list[Job]) -> None:
    _HERE.update(plan=plan, jobs=jobs)


def _made_here(i: int, folder: Path) -> Shard:
    plan, job = _HERE["plan"], _HERE["jobs"][i]
    return made(job, plan.numbers(job.world), plan.seed, folder)
