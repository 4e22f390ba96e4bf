"""A metric that is declared in one place works everywhere: inference, units, cells, tables, the report, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtrc

import calibrary as cal
from calibrary.inference.draw.cells import takes_cells
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.metrics.machinery import entry as machinery
from calibrary.metrics.machinery.declare import CellFacts, TestResult, calibration_test, metric
from calibrary.metrics.machinery.entry import enough_uncertain
from calibrary.metrics.machinery.forms import CellForm, ReplicateForm

ID = "two_halves"


def declare(calls):
    """Declare the error of two bins with its facts and fast computations; ``calls`` records which one was used."""

    def halves(view):
        return (view.c > 0.5).astype(np.intp)

    def size(step, total):
        return float(np.abs(step).sum() / total)

    def prepare(view, **options):
        calls.append("replicate")
        half = halves(view)

        def values(y, w):
            w = view.weight if w is None else w
            residual = view.residual if y is None else y - view.c
            steps = np.stack([(w * residual)[:, half == k].sum(axis=1) for k in (0, 1)])
            return np.abs(steps).sum(axis=0) / np.broadcast_to(w.sum(axis=-1), steps.shape[1:])

        return values

    def cell_value(cells, options):
        calls.append("cells")
        upper = cells.c > 0.5
        return lambda counts: (
            np.abs((counts - cells.n * cells.c) @ np.column_stack([~upper, upper])).sum(axis=1) / cells.n.sum()
        )

    @metric(
        ID,
        family="bin",
        aliases=("error of two halves",),
        fractional="binary",
        residual_only=True,
        cells=CellFacts("exact"),
        cell_edges=lambda options: np.array([0.5]),
        replicate=ReplicateForm(prepare),
        cell_value=CellForm(cell_value),
        equation="sum over two halves of the confidences of |sum (y - c)| / N",
        use="To see that one declaration is enough.",
        since="0.3",
    )
    def two_halves_error(view):
        """Gap between confidence and accuracy below and above one half."""
        return size(np.bincount(halves(view), view.weight * view.residual, minlength=2), view.total)

    @calibration_test(ID, trusted=enough_uncertain(100.0))
    def two_halves_error_test(view):
        """The two halves are normal and independent."""
        step = np.bincount(halves(view), view.weight * view.residual, minlength=2)
        spread = np.bincount(halves(view), view.weight * view.c * (1.0 - view.c), minlength=2)
        used = spread > 0.0
        statistic = float((step[used] ** 2 / spread[used]).sum())
        return TestResult(statistic, float(chdtrc(used.sum(), statistic)))


@pytest.fixture
def calls():
    noted = []
    declare(noted)
    yield noted
    for table in (machinery.ENTRIES, machinery.CODES, machinery.FUNCTIONS, machinery.TESTS):
        del table[ID]
    for kept in (machinery._presets_among, machinery._called):
        kept.cache_clear()
    assert ID not in cal.catalogue


def overconfident(n, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.6, 0.6, n)
    return (rng.random(n) < 0.5 + 0.6 * (c - 0.5)).astype(int), c


def test_it_is_computed_found_and_documented(calls):
    y, c = overconfident(400)
    expected = cal.expected_calibration_error(y, c, n_bins=2)
    assert cal.compute(ID, y, c) == pytest.approx(expected, rel=1e-12)
    entry = cal.catalogue["Error of Two-Halves"]
    assert entry.id == ID
    assert entry.has_test
    assert entry(y, c) == pytest.approx(expected, rel=1e-12)
    assert "sample_weight" in entry.function.__doc__
    w = np.random.default_rng(1).integers(1, 4, 400)
    assert cal.compute(ID, y, c, sample_weight=w) == pytest.approx(cal.compute(ID, y.repeat(w), c.repeat(w)))


def test_its_interval_is_inverted_with_its_replicate_form(calls):
    y, c = overconfident(400)
    found = cal.interval(ID, y, c, n_resamples=199, rng=0)
    assert found.method == "inversion"
    assert "replicate" in calls
    assert found.low < found.value < found.high


def test_the_interval_of_many_rows_reads_cells(calls):
    y, c = overconfident(25_000)
    sample, question = read_call(ID, y, c, {})
    assert takes_cells(as_statistic(ID, sample, question))
    found = cal.interval(ID, y, c, n_resamples=199, rng=0)
    beside = cal.interval("ece", y, c, n_bins=2, n_resamples=199, rng=0)
    assert "cells" in calls
    width = beside.high - beside.low
    assert (found.low, found.high) == pytest.approx((beside.low, beside.high), abs=0.2 * width)


def test_its_own_law_is_used_where_its_rule_trusts_it(calls):
    y, c = overconfident(2000)
    assert cal.test(ID, y, c).law == "asymptotic"
    assert cal.test(ID, y, c).pvalue < 1e-6
    assert cal.test(ID, y[:60], c[:60], n_resamples=99, rng=0).law == "monte-carlo"


def test_whole_units_are_flipped(calls):
    y, c = overconfident(600)
    units = np.arange(600) // 4
    assert cal.test(ID, y, c, units=units, n_resamples=199, rng=0).law == "flips"
    found = cal.interval(ID, y, c, units=units, n_resamples=199, rng=0)
    assert found.method == "triangle"
    assert found.low < found.value < found.high


def test_a_state_of_cells_gives_it_exactly(calls):
    y, c = overconfident(5000)
    state = cal.scale.State(4800).update(y, c)
    assert cal.scale.accuracy(ID, state).kind == "exact"
    assert cal.compute(ID, state) == pytest.approx(cal.compute(ID, y, c), rel=1e-12)


def test_it_stands_in_the_table_and_on_the_page(calls, tmp_path):
    y, c = overconfident(300)
    table = cal.evaluate(y, c, metrics=[ID, "bs"], intervals=True, tests=True, n_resamples=99, rng=0)
    row = next(row for row in table if row.id == ID)
    assert row.low < row.value < row.high
    assert row.pvalue is not None
    page = cal.report(y, c, metrics=[ID, "ece"], primary=ID, n_resamples=99, rng=0)
    page.save(tmp_path / "page.html")
    assert "two halves error" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_metric_without_a_loss_is_refused_as_a_loss(calls):
    pytest.importorskip("torch")
    from calibrary import losses

    with pytest.raises(KeyError, match="has no loss"):
        losses.loss_of(ID)


def test_a_name_that_is_taken_is_refused(calls):
    with pytest.raises(ValueError, match="already has a metric 'two_halves'"):
        declare([])
