"""Without a compiler the numbers are the same, a slow computation gives a hint, and a fast one does not wait."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import CalibrationWarning
from calibrary.numerics import compiled
from calibrary.numerics.smooth import loess
from calibrary.numerics.solve import knots
from calibrary.numerics.solve.lipschitz import lipschitz_maximum
from calibrary.numerics.sums.windows import decayed_sums
from metric_cases import drawn

#: One metric for every loop, with the size and type of data for which the loop is used.
METRICS = [
    "tce", "calbin", "ece_knn", "intce", "rintce", "ici", "emax", "error_at_level", "ece_pl", "ece_pl3", "ece_kde",
    "smce", "tcal", "skce_uq", "lower_distance", "ece_sweep", "mce", "smece",
]  # fmt: skip


sample = partial(drawn, law=(0.8, 0.8), truth=lambda c: c**1.3)


def both(monkeypatch, compute):
    found = []
    for forced in (False, True):
        monkeypatch.setattr(compiled, "FORCED", forced)
        found.append(compute())
    return found


@pytest.mark.parametrize("id", [id for id in METRICS if id in cal.catalogue])
@pytest.mark.parametrize("decimals", [2, 16])
def test_a_metric_is_the_same_with_and_without_a_compiler(id, decimals, monkeypatch):
    y, c = sample(300, decimals=decimals)
    plain, fast = both(monkeypatch, lambda: float(cal.compute(id, y, c)))
    assert plain == pytest.approx(fast, rel=1e-11, nan_ok=True)


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("n_knots", [1, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_for_knots_finds_the_same_ones(logistic, n_knots, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=50) if logistic else rng.random(50))
    y, w = rng.beta(2, 2, 50), rng.dirichlet(np.ones(50))
    plain, fast = both(monkeypatch, lambda: knots.search_knots(x, y, w, x[1:-1], n_knots, logistic))
    np.testing.assert_array_equal(plain, fast)


@pytest.mark.parametrize("h", [0.3, 1e-3, 1e-6])
def test_decayed_sums_are_the_same(h, monkeypatch):
    rng = np.random.default_rng(1)
    x, a = np.sort(rng.random(3000)), rng.normal(size=(3000, 2))
    plain, fast = both(monkeypatch, lambda: decayed_sums(x, a, h))
    np.testing.assert_allclose(plain, fast, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("slope", [1.0, 30.0])
def test_lipschitz_maxima_are_the_same(slope, monkeypatch):
    rng = np.random.default_rng(2)
    x, r = np.sort(rng.random(2000)), rng.normal(size=2000).round(1)
    plain, fast = both(monkeypatch, lambda: lipschitz_maximum(x, r, slope))
    assert plain == pytest.approx(fast, rel=1e-13)


@pytest.mark.parametrize("h", [0.3, 0.01, 1e-4])
def test_local_lines_are_the_same(h, monkeypatch):
    rng = np.random.default_rng(3)
    x = np.sort(np.concatenate((rng.random(1500), np.full(40, 0.25))))
    y, w, t = rng.random(len(x)), rng.random(len(x)) + 0.1, np.linspace(-0.1, 1.1, 900)
    plain, fast = both(monkeypatch, lambda: loess.epanechnikov_lines(x, y, w, t, h))
    np.testing.assert_allclose(plain, fast, rtol=1e-8, atol=1e-9)


def test_few_rows_never_start_a_compiler():
    code = (
        "import sys, numpy as np, calibrary as cal\n"
        "rng = np.random.default_rng(0); c = rng.random(400); y = (rng.random(400) < c).astype(int)\n"
        "cal.evaluate(y, c)\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_without_a_compiler_a_long_loop_names_the_extra_and_runs(monkeypatch):
    monkeypatch.setattr(compiled, "available", lambda: False)
    monkeypatch.setattr(compiled, "_STARTED", set())
    monkeypatch.setattr(compiled, "_SPENT", {})
    monkeypatch.setattr(compiled, "_SLOW", set())
    with pytest.warns(CalibrationWarning, match=r"calibrary\[fast\]"):
        assert not compiled.worth_compiling("file.loop", 5e6)
    assert not compiled.worth_compiling("file.loop", 5e6)  # the hint is given once


def test_a_loop_is_compiled_when_the_plain_form_has_taken_as_long(monkeypatch):
    monkeypatch.setattr(compiled, "available", lambda: True)
    monkeypatch.setattr(compiled, "_STARTED", set())
    monkeypatch.setattr(compiled, "_SPENT", {})
    monkeypatch.setattr(compiled, "_kept", lambda loop: loop == "kept.loop")
    assert not compiled.worth_compiling("new.loop", 1e6)
    assert not compiled.worth_compiling("new.loop", 1e6)
    assert compiled.worth_compiling("new.loop", 1.5e6)
    assert compiled.worth_compiling("new.loop", 1.0)
    assert compiled.worth_compiling("kept.loop", 1e6)
