"""The predefined studies: their settings, sample sizes and numbers of draws.

There are three sizes of the same study, and the studies of the review: de-calibration of a calibrated model by
temperature (9.2), quality of diagram, estimate and ranking (5.10), correlation of metrics (1), and bias by construction
(4.11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibrary.base.errors import one_of
from calibrary.study.classes import ClassWorld
from calibrary.study.curves import CURVES, LAWS, curve_of_temperature
from calibrary.study.world import REPORTS, World

AnyWorld = World | ClassWorld

#: The usual distributions and curves of such studies; the others are additional.
_FIRST_LAWS = ("wide", "sharp", "rare", "top", "ties")
_ADDED_CURVES = ("calibrated", "temperature 0.6", "temperature 1.8", "shift +0.4", "wave 10", "region")
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
    tests_in: tuple[str, ...] = _FIRST_LAWS
    real: bool = False

    @property
    def lies(self) -> tuple[World, ...]:
        """The calibrated settings with every misreport."""
        honest = [world for world in self.worlds if world.family == "calibrated"]
        return tuple(replace(w, report=report) for w in honest for report in REPORTS if report != "honest")


def crossed(laws: tuple[str, ...], curves: tuple[str, ...], amplitudes: tuple[float, ...] = (1.0,)) -> list[World]:
    """Every distribution with every curve, except meaningless pairs."""
    found = [World(law, curve) for law in laws for curve in curves if (law, curve) not in _POINTLESS]
    more = [replace(w, amplitude=a) for a in amplitudes if a != 1.0 for w in found if w.family != "calibrated"]
    return found + more


def _classes(ks: tuple[int, ...]) -> tuple[ClassWorld, ...]:
    return tuple(ClassWorld(k, t, unequal) for k in ks for unequal in (False, True) for t in (1.0, 1.3, 0.7))


def preset(name: str) -> Preset:
    """A predefined study by its name."""
    one_of("preset", name, PRESETS)
    return PRESETS[name]


PRESETS: dict[str, Preset] = {
    each.name: each
    for each in (
        Preset(
            "quick",
            "four distributions of the confidence, eight calibration curves, three sample sizes; takes two minutes",
            tuple(crossed(_FIRST_LAWS[:4], (
                "calibrated", "temperature 0.8", "temperature 0.6", "temperature 1.3", "shift +0.4", "wave 2",
                "wave 10", "beta",
            ))),
            (Size(1000, 10, 40, 0.01, 0.02), Size(100, 15, 60, 0.01, 0.01), Size(10_000, 4, 15, 0.01, 0.02)),
        ),
        Preset(
            "standard",
            "the stored study: eight distributions, fourteen curves, up to 100,000 rows and 100 classes",
            tuple(
                crossed(_FIRST_LAWS, tuple(CURVES))
                + crossed(tuple(law for law in LAWS if law not in _FIRST_LAWS), _ADDED_CURVES)
            ),
            (
                Size(1000, 20, 80, 0.01, 1.0), Size(100, 15, 60), Size(10_000, 6, 30, 0.01, 3.0), Size(300, 15, 60),
                Size(100_000, 2, 10, 0.1, 1.0), Size(3000, 10, 40, 0.01, 2.0),
            ),
            _classes((3, 10, 30, 100)),
            (Size(1000, 8, 40, 0.02, 1.0), Size(300, 8, 40, 0.02, 0.2), Size(3000, 4, 20, 0.02, 0.3)),
            tests_at=(300, 1000),
            real=True,
        ),
        Preset(
            "full",
            "all distributions and curves, three amplitudes, 200 draws; takes hours, split it with --part",
            tuple(crossed(tuple(LAWS), tuple(CURVES), (0.5, 1.0, 1.5))),
            (
                Size(1000, 200, 500, 0.1, 1.0), Size(100, 200, 500, 0.1, 1.0), Size(10_000, 60, 200, 0.1, 1.0),
                Size(300, 200, 500, 0.1, 1.0), Size(3000, 100, 300, 0.1, 1.0), Size(100_000, 10, 40, 0.2, 2.0),
            ),
            _classes((3, 10, 30, 100)),
            (Size(1000, 60, 200, 0.1, 1.0), Size(300, 60, 200, 0.1, 1.0), Size(3000, 30, 100, 0.2, 2.0)),
            tests_at=(300, 1000, 3000),
            real=True,
        ),
        Preset(
            "temperature",
            "section 9.2: every metric on a calibrated model that is de-calibrated by temperature",
            tuple(
                World(law, "calibrated" if slope == 1.0 else curve_of_temperature(slope))
                for law in ("wide", "sharp", "top")
                for slope in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
            ),
            (Size(3000, 10, 30, 0.02, 0.05),),
            lies_at=(),
        ),
        Preset(
            "objectives",
            "section 5.10: quality of the diagram, of the estimate, and of the ranking of models",
            tuple(crossed(("wide", "sharp", "top"), tuple(CURVES))),
            (Size(1000, 10, 30), Size(3000, 8, 20), Size(10_000, 5, 15, 0.02, 0.2)),
            lies_at=(),
        ),
        Preset(
            "correlation",
            "section 1: correlations of metrics, from their values on 10,000 rows of many simulated settings",
            tuple(crossed(_FIRST_LAWS, tuple(CURVES))),
            (Size(10_000, 2, 4, 0.1, 1.0),),
            lies_at=(),
        ),
        Preset(
            "construction",
            "section 4.11: bias and spread of every estimate of the L1 error, from 100 to 10,000 rows",
            tuple(crossed(("wide", "top"), tuple(CURVES))),
            (Size(100, 20, 60), Size(300, 20, 60), Size(1000, 20, 60), Size(3000, 10, 40), Size(10_000, 6, 20)),
            lies_at=(),
        ),
    )
}  # fmt: skip
