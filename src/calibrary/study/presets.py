"""The predefined studies: their settings, sample sizes and numbers of draws.

There are three sizes of the same study, and the studies of the review: de-calibration of a calibrated model by
temperature (9.2), quality of diagram, estimate and ranking (5.10), correlation of metrics (1), and bias by construction
(4.11).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibrary.base.errors import one_of
from calibrary.study.world import CURVES, LAWS, REPORTS, CalibrationCurve, ClassWorld, World, curve_of_temperature

#: Meaningless pairs: with nine grades a wave of ten periods is arbitrary, and below 2% the region has no rows.
_POINTLESS = {("ties", "wave 10"), ("ties", "wave 2"), ("rare", "region"), ("very rare", "region")}


@dataclass(frozen=True)
class Size:
    """A sample size with its numbers of draws.

    Attributes
    ----------
    n : number of rows of a sample
    draws, null_draws : numbers of samples of a miscalibrated setting, and of a calibrated one (for its 95% quantile)
    quick : seconds up to which a metric is computed on every sample; one that takes twice as long is computed on half
        of the samples, and so on, down to a twelfth
    most : seconds above which a metric is not computed
    """

    n: int
    draws: int
    null_draws: int
    quick: float = 0.01
    most: float = 0.1


@dataclass(frozen=True)
class Preset:
    """A study: its settings and sample sizes, for two classes and for several.

    ``lies_at`` and ``tests_at`` are the sample sizes at which misreported probabilities are simulated, and at which the
    metrics' own tests are run, for the distributions ``tests_in`` (for very rare events the tests redraw labels a
    thousand times and are slow). ``real`` adds the agreement of halves of real predictions.
    """

    name: str
    words: str
    worlds: tuple[World, ...]
    sizes: tuple[Size, ...]
    class_worlds: tuple[ClassWorld, ...] = ()
    class_sizes: tuple[Size, ...] = ()
    lies_at: tuple[int, ...] = (1000,)
    tests_at: tuple[int, ...] = ()
    tests_in: tuple[str, ...] = ("wide", "sharp", "rare", "top", "ties")
    real: bool = False

    @property
    def lies(self) -> tuple[World, ...]:
        """The calibrated settings with every misreport."""
        honest = [world for world in self.worlds if world.family == "calibrated"]
        return tuple(replace(w, report=report) for w in honest for report in REPORTS if report != "honest")


def crossed(laws: Any, curves: Any, amplitudes: Sequence[float] = (1.0,)) -> list[World]:
    """Every distribution with every curve, except meaningless pairs."""
    laws, curves = (tuple(every) if given == "all" else given for given, every in ((laws, LAWS), (curves, CURVES)))
    found = [World(law, _curve(curve)) for law in laws for curve in curves if (law, curve) not in _POINTLESS]
    more = [replace(w, amplitude=a) for a in amplitudes if a != 1.0 for w in found if w.family != "calibrated"]
    return found + more


def _curve(named: str | float) -> str | CalibrationCurve:
    if isinstance(named, str):
        return named
    return "calibrated" if named == 1.0 else curve_of_temperature(named)


def _preset(name: str, about: dict[str, Any]) -> Preset:
    worlds = tuple(world for part in about.pop("worlds") for world in crossed(**part))
    settings = [(unequal, t) for unequal in (False, True) for t in (1.0, 1.3, 0.7)]
    classes = tuple(ClassWorld(k, t, unequal) for k in about.pop("classes", ()) for unequal, t in settings)
    sizes, class_sizes = (tuple(Size(*size) for size in about.pop(of, ())) for of in ("sizes", "class_sizes"))
    more: dict[str, Any] = {of: tuple(x) if isinstance(x, list) else x for of, x in about.items()}
    return Preset(name, worlds=worlds, sizes=sizes, class_worlds=classes, class_sizes=class_sizes, **more)


def preset(name: str) -> Preset:
    """A predefined study by its name."""
    one_of("preset", name, PRESETS)
    return PRESETS[name]


_TABLE = Path(__file__).with_name("presets.toml")
PRESETS = {name: _preset(name, about) for name, about in tomllib.loads(_TABLE.read_text(encoding="utf-8")).items()}
