"""Large samples are drawn in cells, rows that belong together are drawn together, and a page has one truth."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.sample import RowSample
from calibrary.inference.draw import cells as large
from calibrary.inference.draw.statistic import as_statistic
from calibrary.inference.methods.drawn import Drawn
from calibrary.inference.overall import many
from calibrary.question import Question


def bent(n: int, slope: float = 0.8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 0.8, n)
    truth = 1.0 / (1.0 + ((1.0 - p) / p) ** slope)
    return (rng.random(n) < truth).astype(int), p


IDS = ("ece", "bs", "mmce", "ecce_mad", "spiegelhalter")


def of_cells_and_rows(monkeypatch: pytest.MonkeyPatch, n: int) -> tuple[cal.Evaluation, cal.Evaluation]:
    y, p = bent(n)
    asked = {"metrics": IDS, "intervals": True, "tests": True, "n_resamples": 199, "rng": 0}
    monkeypatch.setattr(large, "LARGE", n)
    cells = cal.evaluate(y, p, **asked)
    monkeypatch.setattr(large, "LARGE", n + 1)
    return cells, cal.evaluate(y, p, **asked)


def test_cells_give_the_spread_and_the_null_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, rows = of_cells_and_rows(monkeypatch, 3000)
    for a, b in zip(cells.rows, rows.rows, strict=True):
        assert a.value == b.value
        inverted = a.method == "inversion"  # without a standard error
        assert (a.standard_error is None) is (b.standard_error is None) is inverted, a.id
        assert inverted or a.standard_error == pytest.approx(b.standard_error, rel=0.3), a.id
        spread = b.null_high - b.expected_by_chance
        assert a.expected_by_chance == pytest.approx(b.expected_by_chance, abs=0.35 * spread), a.id
        assert a.null_high == pytest.approx(b.null_high, abs=0.6 * spread), a.id


def test_a_metric_that_reads_cells_otherwise_is_drawn_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    y, p = bent(4000)
    monkeypatch.setattr(large, "LARGE", 4000)
    monkeypatch.setattr(large, "_SAME", 1e-6)
    sample = RowSample(cal.predictions(y, p))
    statistics = [as_statistic(id, sample, Question()) for id in ("ece", "rms_calibration_error")]
    drawn = Drawn(Question(n_resamples=99, rng=0), intervals=True, tests=True)
    left = drawn.on_cells(statistics)
    assert [s.name for s in left] == ["rms_calibration_error"]
    assert isinstance(drawn.of[0].sample, large.CellSample)


def test_of_very_many_rows_what_cells_do_not_serve_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    y, p = bent(3000)
    monkeypatch.setattr(large, "LARGE", 3000)
    monkeypatch.setattr(large, "_VERY_LARGE", 2999)
    asked = {"intervals": True, "tests": True, "n_resamples": 39, "rng": 0}
    sample, question = RowSample(cal.predictions(y, p)), Question(n_resamples=39, rng=0)
    statistics = [as_statistic(id, sample, question) for id in ("ecce_mad", "ici")]
    assert {id for id, _ in many.infer_many(statistics, question, named=())} == {"ecce_mad"}
    assert {id for id, _ in many.infer_many(statistics, question, named=("ici",))} == {"ecce_mad", "ici"}
    assert cal.evaluate(y, p, metrics=["ici"], **asked).row("ici").low is not None


# -- rows that belong together ------------------------------------------------------------------------


def copied(patients: int = 60, times: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, patients)
    y = (rng.random(patients) < p).astype(int)
    return np.repeat(y, times), np.repeat(p, times), np.repeat(np.arange(patients), times)


def test_the_intervals_and_tests_of_a_table_are_by_unit() -> None:
    y, p, unit = copied()
    asked = {"metrics": ["ece", "bs", "ici"], "n_resamples": 99, "rng": 0}
    alone, together = cal.report(y, p, **asked).evaluation, cal.report(y, p, units=unit, **asked).evaluation
    # ten copies of sixty rows know what sixty rows know
    assert together.row("bs").standard_error > 2.0 * alone.row("bs").standard_error
    assert alone.row("ece").pvalue <= 0.02 < together.row("ece").pvalue
    assert together.row("ece").method == "triangle"
    assert together.row("ici").pvalue is None
    assert "residuals" in together.row("ici").note


def test_blocks_are_runs_of_time_and_stand_in_the_provenance() -> None:
    y, p, unit = copied()
    answer = cal.report(y, p, metrics=["ece", "bs"], blocks=10, n_resamples=99, rng=0)
    assert answer.evaluation.row("ece").pvalue > 0.02
    assert not answer.decision.rejected
    facts = next(s for s in answer.sections if s.key == "provenance").data
    assert facts["resampled together"] == "blocks of 10 in time order"
    with pytest.raises(TypeError, match="units and blocks"):
        cal.report(y, p, units=unit, blocks=10, n_resamples=99)


# -- one truth on a page ------------------------------------------------------------------------------


def nearly_certain() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    p = rng.beta(30.0, 1.0, 900)
    truth = 1.0 / (1.0 + ((1.0 - p) / p) ** 0.6)
    return (rng.random(900) < truth).astype(int), p


def test_a_row_that_decides_shows_the_p_of_the_decision() -> None:
    y, p = nearly_certain()
    answer = cal.report(y, p, metrics=["ece", "cis", "spiegelhalter", "eo"], n_resamples=99, rng=0)
    assert answer.decision.rejected
    for row, id in ((("cis", "slope"), "slope"), (("spiegelhalter", ""), "spiegelhalter"), (("eo", ""), "mean")):
        shown, told = answer.evaluation.row(*row), answer.decision.row(id)
        assert (shown.pvalue, shown.pvalue_adjusted, shown.among) == (told.pvalue, told.pvalue_adjusted, 4)
    from calibrary.reporting.words import verdict

    if "slope" in answer.headline or "extreme" in answer.headline:
        assert "not significant" not in verdict(answer.evaluation.row("cis", "slope"), answer.evaluation)
