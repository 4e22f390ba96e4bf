"""The interval of every metric contains the perfect value exactly if the test on the same draws does not reject."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.inference.methods.choice import METHODS
from each import FULL, amount, turn
from metric_cases import detections, extra, rows_for_classes

ENTRIES = [e for e in cal.catalogue.values() if e.one_sided and e.null and not e.no_interval]
ALPHA, DRAWS, ROWS = 0.1, 19, 60
#: How often the test rejected, and not.
decided = {True: 0, False: 0}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def binary(wrong):
    rng = np.random.default_rng(2)
    c = np.round(rng.beta(0.8, 0.8, ROWS), 3)
    return (rng.random(ROWS) < (1 - c if wrong else c)).astype(int), c


def several(wrong):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), ROWS)
    q = np.roll(p, 1, axis=1) if wrong else p
    return (q.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).clip(0, 2), p


def agree(id, *data, **options):
    result = cal.interval(id, *data, n_resamples=DRAWS, confidence_level=1 - ALPHA, rng=5, **options)
    if np.isnan(result.value):
        return result
    if result.method not in ("inversion", "triangle"):
        assert result.note  # the note gives the reason for resampling rows instead
        return result
    test = cal.test(id, *data, method="monte-carlo", n_resamples=DRAWS, rng=5, **options)
    assert result.pvalue == test.pvalue
    assert result.low <= result.high
    perfect = cal.catalogue[id].perfect
    assert (result.low <= perfect <= result.high) == (test.pvalue > ALPHA)
    decided[bool(test.pvalue > ALPHA)] += 1
    return result


def one_of(*names):
    """Whether the predictions are wrong: both in a full run, otherwise what these names choose, always the same."""
    return (False, True) if FULL else (turn("-".join(names), ["right", "wrong"]) == "wrong",)


#: Each value is a fit of a tenth of a second and more; they go the way of ici.
SLOW = ("ece_pl", "ece_pl3")
WALKED = [e for e in ENTRIES if e.data_type == "predictions" and e.id not in SLOW]


@pytest.mark.parametrize("entry", WALKED, ids=lambda e: e.id)
def test_binary_and_several_classes(entry):
    for wrong in (True,) if entry.costly else one_of(entry.id):
        y, c = binary(wrong)
        agree(entry.id, y, c, **extra(entry, ROWS))
    if entry.default_lens != "binary" and not entry.costly:
        y, p = several(True)
        agree(entry.id, y, p, **rows_for_classes(entry, extra(entry, ROWS), p))


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.data_type != "predictions"], ids=lambda e: e.id)
def test_detections(entry):
    result = agree(entry.id, detections(n=60, n_images=12))
    assert result.method in ("triangle", "basic")


@pytest.mark.parametrize("lens", ["class-wise", "full", "top-label"])
@pytest.mark.parametrize("id", ["ece", "mce", "ecce_mad", "mmce", "skce_b", "skce_uq"])
def test_lenses(id, lens):
    if lens not in cal.catalogue[id].lenses:
        pytest.skip("does not apply: not a lens of this metric")
    for wrong in one_of(id, lens):
        assert agree(id, *several(wrong), lens=lens).method in ("inversion", "triangle")


@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
@pytest.mark.parametrize("id", ["ece", "ecce_r", "mmce", "ce2_db", "smece"])
def test_weights_of_both_kinds(id, weight_type):
    w = np.random.default_rng(0).integers(1, 4, ROWS)
    for data in (binary, several):
        for wrong in one_of(id, weight_type, data.__name__):
            agree(id, *data(wrong), sample_weight=w, weight_type=weight_type)


def test_classifier_metrics_of_detections_are_inverted():
    found = detections(n=60, n_images=12)
    assert agree("ece", found).method == "inversion"
    assert agree("ecce_mad", found).method == "inversion"


def test_both_decisions_were_seen():
    # computed here, so that the test does not depend on which other tests ran
    decided.update(dict.fromkeys(decided, 0))
    for id in ("ece", "ecce_mad", "mce"):
        for wrong in (False, True):
            agree(id, *binary(wrong))
            agree(id, *several(wrong))
    assert sum(decided.values()) == 12
    assert min(decided.values()) >= 4


# -- shares -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["ece", "ecce_mad", "mmce", "mce"])
def test_shares_are_rows_that_weigh_as_much(id):
    rng = np.random.default_rng(0)
    c, votes = rng.random(60), rng.integers(0, 5, 60)
    share = votes / 4
    result = cal.interval(id, share, c, n_resamples=DRAWS, rng=1, confidence_level=0.9)
    row = np.concatenate([np.arange(60)] * 2)
    y, w = np.repeat([0, 1], 60), np.concatenate([1 - share, share])
    keep = w > 0
    order = np.lexsort((y[keep], row[keep]))
    row, y, w = row[keep][order], y[keep][order], w[keep][order]
    same = cal.interval(id, y, c[row], sample_weight=w, weight_type="importance", n_resamples=DRAWS, rng=1,
                        confidence_level=0.9)  # fmt: skip
    assert (result.method, result.low, result.high) == (same.method, pytest.approx(same.low), pytest.approx(same.high))
    assert result.method == "inversion"
    assert result.value == pytest.approx(cal.compute(id, share, c))


# -- one metric, many metrics, a page ------------------------------------------------------------------

SAME = ("ece", "ecce_mad", "smece", "bs", "oe", "esce")
KINDS = ("hard", "shares", "counts", "weights", "units", "blocks")


def case(kind, k, n=80):
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.full(k, 0.7), n)
    q = np.clip(p + 0.3 * (p.mean(axis=1, keepdims=True) - p), 0.0, 1.0)
    votes = np.array([rng.multinomial(4, row / row.sum()) for row in q])
    y = votes / 4 if kind == "shares" else votes.argmax(axis=1)
    keywords = {
        "counts": {"sample_weight": rng.integers(1, 4, n)},
        "weights": {"sample_weight": rng.uniform(0.5, 1.5, n), "weight_type": "importance"},
        "units": {"units": np.arange(n) // 2},
        "blocks": {"blocks": 4},
    }.get(kind, {})
    if k == 2:
        return y[:, 1] if kind == "shares" else y, p[:, 1], keywords
    return y, p, keywords


def ends_of(found):
    return [found.low, found.high]


@pytest.mark.parametrize(
    ("kind", "k"), [(kind, k) for i, kind in enumerate(KINDS) for k in ((2, 4) if FULL else (2 + 2 * (i % 2),))]
)
def test_interval_evaluate_verdict_and_report_give_the_same_interval(kind, k):
    y, p, keywords = case(kind, k)
    draws = {"n_resamples": amount(39, 99), "confidence_level": 0.9, "rng": 7, **keywords}
    table = cal.evaluate(y, p, metrics=SAME, intervals=True, tests=True, **draws)
    methods = set()
    for id in SAME:
        alone = cal.interval(id, y, p, **draws)
        row = cal.evaluate(y, p, metrics=[id], intervals=True, **draws).row(id)
        assert (row.method, row.reason) == (table.row(id).method, table.row(id).reason) == (alone.method, alone.note)
        judged = cal.verdict(f"{id}<0.5", y, p, **draws)
        # the last digit may depend on the number of replicates that are computed at once
        for found in (row, table.row(id), judged):
            assert ends_of(found) == pytest.approx(ends_of(alone), rel=1e-9, abs=1e-12), id
            assert found.method == alone.method, id
        methods.add(alone.method)
    grouped = kind in ("units", "blocks")
    assert methods >= ({"triangle", "studentized"} if grouped else {"inversion", "studentized", "asymptotic"})
    page = cal.report(y, p, metrics=list(SAME), primary="ece", **draws)
    shown = {key.id: key for key in page.short_list if key.id in SAME}
    assert len(shown) >= 4
    for id, key in shown.items():
        assert ends_of(key) == pytest.approx(ends_of(table.row(id)), rel=1e-9), id


@pytest.mark.parametrize("lens", ["top-label", "class-wise"])
def test_a_lens_changes_nothing_of_this(lens):
    y, p, _ = case("hard", 4)
    draws = {"n_resamples": 39, "rng": 3, "lens": lens}
    ids = ["ece", "ace", "mce", "ecce_mad", "smece", "ici"]
    table = cal.evaluate(y, p, metrics=ids, intervals=True, tests=True, **draws)
    for id in ids:
        alone = cal.interval(id, y, p, **draws)
        assert ends_of(table.row(id)) == pytest.approx(ends_of(alone), rel=1e-9, abs=1e-12), id


@pytest.mark.parametrize("weighted", [False, True])
def test_nor_do_cells_of_many_rows(weighted):
    y, p, _ = case("hard", 2, n=4000)
    draws = {"n_resamples": 99, "rng": 5}
    draws |= {"sample_weight": np.arange(4000) % 3 + 1} if weighted else {}
    ids = ["ece", "ecce_mad", "smece", "auroc", "bs", "esce", "rms_calibration_error", "cis.slope"]
    table = cal.evaluate(y, p, metrics=[*ids, "aurc", "ks"], intervals=True, tests=True, **draws)
    paths = set()
    for id in ids:
        alone = cal.interval(id, y, p, **draws)
        assert ends_of(table.row(id)) == pytest.approx(ends_of(alone), rel=1e-9, abs=1e-12), id
        assert alone.value == pytest.approx(table[id], rel=1e-12), id
        paths.add((alone.method, alone.path))
        if alone.method in ("inversion", "triangle"):
            row = table.row(id)
            assert row.pvalue == pytest.approx(alone.pvalue), id
            assert row.pvalue_adjusted >= row.pvalue
            assert (row.low > 0.0) == (row.pvalue <= 0.05), id
    assert paths >= {("inversion", "cells"), ("triangle", "cells"), ("basic", "cells"), ("studentized", "rows")}


def test_nor_do_matched_boxes():
    matches = detections(n=60, n_images=12)
    ids = ["ece", "d_ece", "bs"]
    table = cal.evaluate(matches, metrics=ids, intervals=True, n_resamples=99, rng=2)
    for id in ids:
        alone = cal.interval(id, matches, n_resamples=99, rng=2)
        assert ends_of(table.row(id)) == pytest.approx(ends_of(alone), rel=1e-9, abs=1e-12), id


def test_bootstrap_ends_of_labels_that_cannot_be_drawn_carry_a_caution_and_are_not_on_a_page():
    rng = np.random.default_rng(0)
    p = rng.random((80, 3))
    y = (rng.random((80, 3)) < p).astype(int)  # several labels per row, calibrated
    draws = {"metrics": ["ece", "bs"], "n_resamples": 39, "rng": 0}
    table = cal.evaluate(y, p, intervals=True, tests=True, **draws)
    assert table.row("ece").method == "basic"
    assert table.row("ece").low > 0  # it misses the true value
    assert table.row("ece").note.endswith("the interval may miss a true value near the perfect one")
    assert "may miss" not in table.row("bs").note
    page = cal.report(y, p, primary="ece", **draws)
    shown = {key.id: key.low for key in page.short_list}
    assert shown["ece"] is None
    assert shown["bs"] == table.row("bs").low
    assert "no interval of the ECE" in page.headline
    assert "95%" not in page.headline
    assert page.evaluation.row("ece").note.endswith("it is not shown on a page")


def test_a_table_of_everything_inverts_what_is_quick_and_every_metric_that_was_named():
    draws = {"intervals": True, "n_resamples": DRAWS, "confidence_level": 0.9, "rng": 0}
    named = cal.evaluate(*binary(False), metrics=["ece", "atb", "mmce", "ace"], **draws)
    assert {row.method for row in named.rows} == {"inversion"}
    table = cal.evaluate(*binary(False), metrics=["bin", "cumulative", "kernel"], primary="mmce", **draws)
    inverted = {row.id for row in table.rows if row.method == "inversion"}
    quick = {entry.id for entry in cal.catalogue.values() if entry.inverted_in_tables}
    assert inverted == {*quick, "mmce"}
    assert table.row("ace").method == "triangle"


# -- what means nothing, and what is not given ---------------------------------------------------------


@pytest.mark.parametrize("id", ["calibration_e_value", "ehl", "honest_error"])
@pytest.mark.parametrize("method", ["auto", "percentile"])
def test_intervals_that_mean_nothing_are_refused(id, method):
    assert method in METHODS
    y, c = binary(False)
    with pytest.raises(ValueError, match=f"{id} has no confidence interval: "):
        cal.interval(id, y, c, method=method)
    row = cal.evaluate(y, c, metrics=[id], intervals=True, n_resamples=DRAWS).row(id)
    assert row.low is None
    assert cal.catalogue[id].no_interval in row.note
