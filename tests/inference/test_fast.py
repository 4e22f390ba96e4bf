"""Every fast resampling path equals its metric, through every lens, for random weights and labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.data.sample import sample_of
from calibrary.data.stacked import Block, Replicate
from calibrary.inference.draw import fast
from calibrary.inference.draw.resampling import one_by_one, replicate
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.forms import ReplicateForm
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.draw import generator
from calibrary.question import Question
from each import FULL, amount

DECLARED = {e.id: e.replicate for e in cal.catalogue.values() if e.replicate is not None}
ROW_MEANS = [
    e.id
    for e in cal.catalogue.values()
    if "reduction" in e.options and e.data_type == "predictions" and not e.needs and e.id not in DECLARED
]
OPTIONS = {
    "ece": [{}, {"n_bins": 4}, {"norm": 2}, {"edges": [0, 0.3, 1]}, {"closed": "left"}],
    "mce": [{}, {"n_bins": 3}],
    "smece": [{}, {"sigma": 0.1}, {"grid": 50}],
    "skce_uq": [{}, {"bandwidth": 0.3}, {"kernel": "gaussian"}, {"metric": "euclidean"}],
}
LENSES = ["auto", "class-wise", "top-label"]


def labels_only(id: str) -> bool:
    return id in DECLARED and DECLARED[id].labels_only


def problem(seed: int, n: int, k: int):
    """Predictions with ties, and labels that need not fit them."""
    rng = np.random.default_rng(seed)
    if k == 2:
        p = np.round(rng.random(n), rng.integers(1, 6))
    else:
        p = rng.dirichlet(np.full(k, 0.5), n)
    return rng, rng.integers(0, k, n), p


def held(id: str, options: dict, lens: str, seed: int, n: int, k: int, relabels: bool, weighted: bool) -> bool:
    """Compare the path with the metric on one replicate; False if there is no path or the metric does not apply."""
    rng, y, p = problem(seed, max(n, 2) if labels_only(id) else n, k)
    n = len(y)
    w = rng.integers(1, 4, n).astype(float) if weighted else None
    entry = cal.catalogue[id]
    sample = sample_of(cal.predictions(y, p, sample_weight=w))
    lens = lens if lens in entry.lenses else "auto"
    statistic = as_statistic(entry, sample, Question(lens=lens, options=options))
    try:
        assert statistic.observed.size
    except RefusedError:  # too few rows for the metric, on the sample or on the replicate
        return False
    scheme = sample.null() if relabels else sample.bootstrap()
    path = fast.fast(entry, statistic.question, scheme, statistic.observed)
    if path is None:
        return False
    rows = scheme.rows
    if relabels:
        replicate = Replicate(scheme.base, order=scheme.order, y=rng.integers(0, k, rows.n))
        data = rows.relabeled(replicate.row_labels)
    else:
        new = rng.integers(0, 3, rows.n) * rows.weight
        if not new.any():
            return False
        replicate = Replicate(scheme.base, order=scheme.order, w=lambda: new)
        data = cal.predictions(y, p, sample_weight=new)
    try:
        expected = statistic.flat(measure(entry, data, statistic.question))
    except RefusedError:
        return False
    for copies in (1, 2):
        np.testing.assert_allclose(path(Block([replicate] * copies)), [expected] * copies, rtol=1e-9, atol=1e-12)
    return True


shapes = {
    "seed": st.integers(0, 10**6), "n": st.integers(1, 60), "k": st.sampled_from([2, 2, 3, 5]),
    "relabels": st.booleans(), "weighted": st.booleans(), "lens": st.sampled_from(LENSES),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("id", sorted(DECLARED))
@settings(max_examples=amount(15, 60), deadline=None)
@given(**shapes, which=st.integers(0, 10))
def test_a_registered_path_gives_what_the_metric_gives(id, which, seed, n, k, relabels, weighted, lens):
    choices = OPTIONS.get(id, [{}])
    held(id, choices[which % len(choices)], lens, seed, n, k, relabels, weighted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("id", ROW_MEANS)
@settings(max_examples=amount(5, 15), deadline=None)
@given(**shapes)
def test_a_mean_of_rows_is_the_metric(id, seed, n, k, relabels, weighted, lens):
    entry = cal.catalogue[id]
    if lens != "auto" and lens not in entry.lenses:
        lens = "auto"
    held(id, {}, lens, seed, n, k, relabels, weighted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("id", [*sorted(DECLARED), "bs", "mae", "sr"])
@pytest.mark.parametrize("relabels", [False, True])
def test_the_path_is_there_for_plain_predictions(id, relabels):
    classes = [2, 4] if labels_only(id) else [2]
    answered = [held(id, {}, "auto", 5, 50, k, relabels, False) for k in classes]
    assert any(answered) == (relabels or not labels_only(id))


BLOCKS = [("ece", {}), ("ece", {"norm": 2}), ("mce", {}), ("ecce_mad", {}), ("ecce_r", {}), ("ece", {"closed": "left"})]
CLASSES_IN_BLOCKS = [
    *BLOCKS, ("ece", {"lens": "class-wise"}), ("ece", {"lens": "class-wise", "average": "max", "norm": 2}),
    ("ecce_mad", {"lens": "class-wise", "average": [1, 2, 3, 4]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("id", "options", "k", "weighted"),
    [
        (id, options, k, weighted)
        for k, tried in ((2, BLOCKS), (4, CLASSES_IN_BLOCKS))
        for i, (id, options) in enumerate(tried)
        for weighted in ((False, True) if FULL else (i % 2 == k // 4,))
    ],
)
def test_replicates_read_in_blocks_are_those_read_one_by_one(id, options, k, weighted):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(k), 70).round(2)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    y = rng.integers(0, k, 70)
    w = rng.integers(1, 4, 70) if weighted else None
    sample, question = read_call(id, y, p[:, 1] if k == 2 else p.clip(0), {**options, "sample_weight": w})
    statistic = as_statistic(id, sample, question, redrawn=True)
    scheme = sample.null(None, {statistic.link})
    value, fast_together = statistic.path(scheme)
    assert fast_together
    together, alone = (
        replicate(scheme, value, 1, 1200, np.random.default_rng(5), in_blocks=in_blocks) for in_blocks in (True, False)
    )
    np.testing.assert_allclose(together.values, alone.values, rtol=1e-13, atol=1e-15)


def test_a_wrong_path_is_caught(monkeypatch):
    entry = ENTRIES["ecce_mad"]
    right = entry.replicate.prepare

    def wrong(view, **options):  # the largest value in place of the largest absolute value
        values = right(view, **options)
        return lambda y, w: np.where(values(y, w) < 0.05, values(y, w), values(y, w) - 1e-6)

    monkeypatch.setitem(ENTRIES, "ecce_mad", replace(entry, own=replace(entry.code, replicate=ReplicateForm(wrong))))

    def every_seed():
        for seed in range(10):
            held("ecce_mad", {}, "auto", seed, 40, 2, False, False)

    with pytest.raises(AssertionError):
        every_seed()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("average", ["uniform", "prevalence", "max"])
@pytest.mark.parametrize("lens", ["class-wise", "pairwise", "true-class"])
@pytest.mark.parametrize("id", ["bs", "ece", "ecce_mad", "smece", "nll"])
def test_averages_are_those_of_each_replicate(id, lens, average):
    _, y, p = problem(4, 40, 3)
    result = cal.interval(id, y, p, method="percentile", lens=lens, average=average, n_resamples=5, rng=7, clip=False)
    stream = generator(7, "rows")
    for value in result.draws:
        rows = stream.integers(0, 40, 40)
        expected = cal.compute(id, y[rows], p[rows], lens=lens, average=average)
        assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("relabels", [False, True])
def test_a_class_that_is_tested_in_some_replicates_only_counts_in_those(relabels):
    rng = np.random.default_rng(1)
    c = rng.uniform(0.1, 0.9, 60)
    p = np.column_stack([1.0 - c, c, np.zeros(60)])
    p[0] = 0.5, 0.3, 0.2  # without this row, class 2 has no p-value
    y = (rng.random(60) < c).astype(int)
    sample, question = read_call("hl", y, p, {})
    statistic = as_statistic("hl", sample, question, redrawn=relabels)
    scheme = sample.null(None, {statistic.link}) if relabels else sample.bootstrap()
    path = fast.fast(ENTRIES["hl"], statistic.question, scheme, statistic.observed)
    assert path is not None
    drawn = replicate(scheme, path, 1, 40, np.random.default_rng(5)).values
    slow = replicate(scheme, one_by_one(statistic.on), 1, 40, np.random.default_rng(5)).values
    np.testing.assert_allclose(drawn, slow, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_each_class_by_itself_is_not_drawn_in_stacks_that_are_for_the_mean():
    _, y, p = problem(4, 60, 3)
    sample, question = read_call("hl", y, p, {"average": None})
    statistic = as_statistic("hl", sample, question)
    assert fast.fast(ENTRIES["hl"], statistic.question, sample.bootstrap(), statistic.observed) is None
