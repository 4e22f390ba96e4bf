"""Every fast computation that an entry declares equals ``measure``: direct, replicate, cell_value, and exact cells.

The fast computations are taken from the entries, so that new ones are tested without a change here. The data are small
and difficult: ties, masses at 0 and 1, empty bins, weights, redrawn labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrary as cal
from calibrary.inference.methods.asymptotic import LAWS
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.forms import CellCounts, CellForm, ReplicateForm
from calibrary.metrics.machinery.measure import measure, numbers
from calibrary.numerics import compiled
from calibrary.question import Question
from calibrary.scale import State
from calibrary.scale.accuracy import BOUNDS
from each import amount


def having(form):
    return [id for id, entry in ENTRIES.items() if getattr(entry, form) is not None]


DIRECT, REPLICATE, CELL_VALUE = having("direct"), having("replicate"), having("cell_value")
EXACT = [id for id, entry in ENTRIES.items() if entry.cells is not None and entry.cells.kind == "exact"]

#: Options with which a fast computation is tested, besides the defaults; it may return None for these options.
OPTIONS = [
    {}, {"norm": 2}, {"n_bins": 4}, {"edges": [0.0, 0.3, 1.0]}, {"closed": "left"}, {"binning": "mass", "n_bins": 3},
    {"binning": "width"}, {"sigma": 0.1}, {"grid": 40}, {"root": True}, {"bandwidth": 0.3}, {"kernel": "gaussian"},
    {"scale": "sum"}, {"scale": "half"}, {"ties": "aggregate"}, {"mass_rule": "round"},
]  # fmt: skip


def cases(ids):
    """Every metric with each of the options that it has."""
    return [(id, options) for id in ids for options in OPTIONS if set(options) <= set(ENTRIES[id].options)]


shapes = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(2, 60),
    "decimals": st.sampled_from([1, 2, 16]),
    "certain": st.booleans(),
}
check = settings(max_examples=amount(5, 25), deadline=None)
quiet = pytest.mark.filterwarnings("ignore")


def binary(seed, n, decimals, certain=False):
    """Confidences with ties and empty bins, optionally with masses at 0 and 1, and labels that need not fit them."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.05, 0.95, n).round(decimals)
    if certain:
        c = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), c)
    return rng, rng.integers(0, 2, n), c, rng.integers(1, 4, n).astype(float)


def vectors(seed, n, certain=False):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.4), n)
    if certain:
        p[rng.random(n) < 0.3] = np.eye(4)[rng.integers(0, 4)]
    return rng, rng.integers(0, 4, n), p, rng.integers(1, 4, n).astype(float)


def value_of(id, y, p, w=None, **options):
    # a form computes what the formula makes of the rows as they are
    lens = "binary" if np.ndim(p) == 1 and ENTRIES[id].binary_lens == "top-label" else "auto"
    return measure(ENTRIES[id], cal.predictions(y, p, sample_weight=w), Question(options=options, lens=lens))


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# -- each form held to the metric ---------------------------------------------------------------------


def hold_direct(id, options, seed, n, decimals, certain=False):
    """Compare the direct computation with the metric; returns whether it gave a value at least once."""
    direct, answered = ENTRIES[id].direct, False
    for _, y, p, w in (binary(seed, n, decimals, certain), vectors(seed, n, certain)):
        found = direct(y, p, **options)
        if found is not None:
            answered = True
            same(found, value_of(id, y, p, **options))
        assert direct(y, p, sample_weight=w, **options) is None
        assert direct(y.tolist(), p, **options) is None
        wrong = p.copy()
        wrong.flat[0] = 1.5
        assert direct(y, wrong, **options) is None
    return answered


def hold_replicate(id, options, seed, n, decimals, certain=False, ascending=False, weighted=False):
    """Compare the replicate computation with the metric; returns whether it gave a value."""
    drawn = [binary(seed, n, decimals, certain)]
    if ENTRIES[id].replicate.labels_only:
        drawn.append(vectors(seed, n, certain))
    answered = [hold_replicate_of(id, options, *one, ascending, weighted) for one in drawn]
    return any(answered)


def hold_replicate_of(id, options, rng, y, p, w, ascending, weighted):
    form, n = ENTRIES[id].replicate, len(y)
    if ascending and p.ndim == 1:
        p = np.sort(p)
    w = w if weighted else None
    view = cal.predictions(y, p, sample_weight=w)
    view.ascending = ascending and p.ndim == 1
    of_labels, of_weights = form.of_labels(view, options), form.of_weights(view, options)
    if of_labels is None:
        return False

    def expected(y, p, w):
        found = list(numbers(value_of(id, y, p, w, **options), ENTRIES[id].fields).values())
        return found if ENTRIES[id].fields else found[0]

    labels = rng.integers(0, p.shape[1] if p.ndim == 2 else 2, (3, n))
    for new in labels:
        same(of_labels(new[None])[0], expected(new, p, w))
    same(of_labels(labels), [expected(new, p, w) for new in labels])
    weights = rng.integers(0, 3, (3, n)) * view.weight
    if of_weights is not None and weights.any(axis=1).all():
        assert not form.labels_only
        of_each = [expected(y[new > 0], p[new > 0], new[new > 0]) for new in weights]
        for new, value_there in zip(weights, of_each, strict=True):
            same(of_weights(new[None])[0], value_there)
        same(of_weights(weights), of_each)
    return True


def hold_cell_value(id, options, seed, n, decimals, certain=False, weighted=False):
    """Compare the value from cells with the metric; each cell has one confidence, so that the value is exact."""
    form = ENTRIES[id].cell_value
    if not set(options) <= set(form.options):
        return False
    rng, y, c, w = binary(seed, n, decimals, certain)
    w = w if weighted else None
    view = cal.predictions(y, c, sample_weight=w)
    bins = np.zeros(n, dtype=int) if form.grouping is None else form.grouping(options).groups(view).index
    keys, cell = np.unique(np.column_stack([c, bins]), axis=0, return_inverse=True)
    cell = cell.ravel()
    counts = CellCounts(
        np.bincount(cell, view.weight), keys[:, 0], None if form.grouping is None else keys[:, 1].astype(int)
    )
    labels = np.array([y, *rng.integers(0, 2, (3, n))])
    found = form.value(counts, options)(np.array([np.bincount(cell, view.weight * new) for new in labels]))
    same(found, [value_of(id, new, c, w, **options) for new in labels])
    return True


def hold_exact(id, seed, n, decimals, certain=False):
    """A state of 4,800 cells has the value of the rows."""
    entry = ENTRIES[id]
    _, y, c, w = binary(seed, n, decimals, certain)
    w = w if entry.weights == "repetition" else None
    state = State(4800).update(y, c, sample_weight=w).as_predictions()
    rows, cells = numbers(value_of(id, y, c, w), entry.fields), numbers(measure(entry, state), entry.fields)
    same(list(cells.values()), list(rows.values()))


@pytest.fixture(autouse=True)
def warm(monkeypatch):
    monkeypatch.setattr(compiled, "_STARTED", {"width_bins.add_residuals", "width_bins.of_class"})


@quiet
@pytest.mark.parametrize(("id", "options"), cases(DIRECT))
@check
@given(**shapes)
def test_a_direct_form_is_the_metric(id, options, seed, n, decimals, certain):
    hold_direct(id, options, seed, n, decimals, certain)


@quiet
@pytest.mark.parametrize(("id", "options"), cases(REPLICATE))
@check
@given(**shapes, ascending=st.booleans(), weighted=st.booleans())
def test_a_replicate_form_is_the_metric(id, options, seed, n, decimals, certain, ascending, weighted):
    hold_replicate(id, options, seed, n, decimals, certain, ascending, weighted)


@quiet
@pytest.mark.parametrize(("id", "options"), cases(CELL_VALUE))
@check
@given(**shapes, weighted=st.booleans())
def test_a_cell_form_is_the_metric(id, options, seed, n, decimals, certain, weighted):
    hold_cell_value(id, options, seed, n, decimals, certain, weighted)


@quiet
@pytest.mark.parametrize("id", EXACT)
@check
@given(**shapes)
def test_cells_that_are_called_exact_are(id, seed, n, decimals, certain):
    hold_exact(id, seed, n, decimals, certain)


# -- the test itself ------------------------------------------------------------------------------------


def test_every_form_answers_for_plain_data():
    """A fast computation that always returned None would never be tested."""
    assert all(hold_direct(id, {}, 3, 50, 2) for id in DIRECT)
    assert all(hold_replicate(id, {}, 3, 50, 2, ascending=True) for id in REPLICATE)
    assert all(hold_cell_value(id, {}, 3, 50, 2) for id in CELL_VALUE)
    assert {"ece", "bs", "nll"} <= set(DIRECT)
    assert {"ece", "smece", "skce_b"} <= set(REPLICATE)
    assert {"ece", "ecce_r"} <= set(CELL_VALUE)


def off(form):
    """The same computation with an error of one millionth."""
    wrong = 1.0 + 1e-6
    if isinstance(form, ReplicateForm):

        def prepare(view, **options):
            values = form.prepare(view, **options)
            return None if values is None else lambda y, w: values(y, w) * wrong

        return replace(form, prepare=prepare)
    if isinstance(form, CellForm):
        return replace(form, value=lambda cells, options: lambda counts: form.value(cells, options)(counts) * wrong)
    return lambda y, p, **options: None if (found := form(y, p, **options)) is None else found * wrong


@quiet
@pytest.mark.parametrize(
    ("id", "form"), [(id, form) for form in ("direct", "replicate", "cell_value") for id in having(form)]
)
def test_a_wrong_form_is_caught(id, form, monkeypatch):
    entry = ENTRIES[id]
    monkeypatch.setitem(ENTRIES, id, replace(entry, own=replace(entry.code, **{form: off(getattr(entry, form))})))
    hold = {"direct": hold_direct, "replicate": hold_replicate, "cell_value": hold_cell_value}[form]
    more = {"ascending": True} if form == "replicate" else {}
    with pytest.raises(AssertionError):
        hold(id, {}, 3, 300, 2, **more)


@quiet
def test_cells_that_are_not_exact_are_caught():
    with pytest.raises(AssertionError):
        hold_exact("spiegelhalter", 3, 3000, 16)


# -- words that traits are declared with ----------------------------------------------------------------


def test_declared_words_are_known_where_they_are_read():
    kinds = {"exact", "smooth", "order", "copies", "counts", "keys", "sample", "detection", "boxes"}
    statistics = {"mean", "slope", "spiegelhalter"}
    for entry in ENTRIES.values():
        assert entry.law in {"", *LAWS}, entry.id
        assert set(entry.overall.values()) <= statistics, entry.id
        if entry.cells is not None:
            assert entry.cells.kind in kinds, entry.id
            assert entry.cells.bound in {"", *BOUNDS}, entry.id
    assert {entry.law for entry in ENTRIES.values()} == {"", *LAWS}
    assert {entry.cells.bound for entry in ENTRIES.values() if entry.cells is not None} == {"", *BOUNDS}
