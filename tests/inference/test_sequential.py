"""E-values and the monitor: the mixture by definition, merging, peeking, and the split e-value of the inventors."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
import own
from calibrary.inference.overall.sequential import _PATH, ALTERNATIVES, Alternative, log_ratios
from calibrary.numerics.draw import generator
from golden import arrays, assert_close, parts, weights_of


def stream(n, seed=0, slope=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(shift + slope * logit(c))).astype(int), c


def literally(y, c):
    """The mixture, alternative by alternative."""
    products = []
    for a, b, d in itertools.product((0, 0.25, -0.25, 0.5, -0.5, 1, -1), *[(0.5, 0.7, 0.85, 1, 1.2, 1.5, 2)] * 2):
        if (a, b, d) == (0, 1, 1):
            continue
        q = expit(a + b * np.log(c) - d * np.log1p(-c))
        products.append(np.prod(np.where(y == 1, q / c, (1 - q) / (1 - c))))
    assert len(products) == 342
    return np.mean(products)


# -- the mixture ---------------------------------------------------------------------------------------


def test_golden():
    (entry,) = parts("emerging", "mixture_e")
    y, c, _ = arrays(entry["data"])
    assert_close(cal.calibration_e_value(y, c, log=True), entry)


@pytest.mark.parametrize(("seed", "slope", "shift"), [(0, 1, 0), (1, 0.6, 0), (2, 1.5, 0.5)])
def test_the_mixture_equals_its_definition(seed, slope, shift):
    y, c = stream(200, seed, slope, shift)
    assert cal.calibration_e_value(y, c) == pytest.approx(literally(y, c), rel=1e-9)
    assert cal.calibration_e_value(y, c, log=True) == pytest.approx(math.log(literally(y, c)), abs=1e-9)
    result = own.calibration_e_value_test(y, c)
    assert result.statistic == pytest.approx(literally(y, c), rel=1e-9)
    assert result.pvalue == pytest.approx(min(1.0, 1 / result.statistic))


def test_the_expectation_is_one_under_calibration():
    """Over all outcomes of five predictions, exactly."""
    c = np.array([0.1, 0.3, 0.5, 0.8, 0.97])
    total = 0.0
    for y in itertools.product((0, 1), repeat=5):
        y = np.array(y)
        chance = np.prod(np.where(y == 1, c, 1 - c))
        total += chance * cal.calibration_e_value(y, c)
    assert total == pytest.approx(1.0, rel=1e-12)


def test_weights_swapped_classes_and_tiny_probabilities():
    y, c = stream(300)
    w = weights_of("1+i%3", 300)
    i = np.repeat(np.arange(300), w.astype(int))
    got = cal.calibration_e_value(y, c, sample_weight=w, log=True)
    assert got == pytest.approx(cal.calibration_e_value(y[i], c[i], log=True), abs=1e-9)
    with pytest.raises(ValueError, match="whole number"):
        own.calibration_e_value_test(y, c, sample_weight=w / 7)
    tiny = np.array([1e-300, 1e-12, 1 - 1e-16])
    assert math.isfinite(cal.calibration_e_value([0, 0, 1], tiny, log=True))
    assert cal.calibration_e_value([0, 0, 1], tiny, log=True) == pytest.approx(0.0, abs=1e-3)


def test_exact_zeros_and_ones():
    y, c = stream(50)
    sure = np.append(c, [0.0, 1.0]), np.append(y, [0, 1])
    assert cal.calibration_e_value(sure[1], sure[0]) == pytest.approx(cal.calibration_e_value(y, c), rel=1e-12)
    wrong = np.append(y, [1, 1])
    assert cal.calibration_e_value(wrong, sure[0]) == math.inf
    assert own.calibration_e_value_test(wrong, sure[0]).pvalue == 0.0


def test_the_logarithm_stays_finite_where_the_number_does_not():
    y, c = stream(20_000, slope=0.3)
    assert cal.calibration_e_value(y, c) == math.inf
    assert 709 < cal.calibration_e_value(y, c, log=True) < math.inf


def test_several_classes_have_the_mean_of_their_e_values():
    y, p, _ = arrays("multi4")
    each = [cal.calibration_e_value(y == k, p[:, k]) for k in range(4)]
    assert cal.calibration_e_value(y, p, lens="class-wise") == pytest.approx(np.mean(each))
    assert cal.calibration_e_value(y, p, lens="class-wise", log=True) == pytest.approx(math.log(np.mean(each)))
    result = own.calibration_e_value_test(y, p, lens="class-wise")
    assert result.statistic == pytest.approx(np.mean(each))
    with pytest.raises(ValueError, match="is not an e-value"):
        cal.calibration_e_value(y, p, lens="class-wise", average="max")


@pytest.mark.parametrize(
    ("alternative", "said"),
    [
        ((0, 0.7, 0.7), "over-confident, slope 0.7"),
        ((0, 1.5, 1.5), "under-confident, slope 1.5"),
        ((0.5, 1, 0.5), "over-confident, slope 0.75"),
        ((0.5, 1, 1), "probabilities too low: a stated 50% corresponds to 62.2%"),
        ((-0.8, 1.5, 1.5), "a stated 50% corresponds to 31%, slope 1.5"),  # too high nearly everywhere: no mere slope
        ((-1, 1, 1), "probabilities too high: a stated 50% corresponds to 26.9%"),
    ],
)
def test_alternatives_in_words(alternative, said):
    assert Alternative(*alternative).words == said


def test_every_alternative_has_words_and_its_reflection_the_mirrored_ones():
    mirrored = {"low": "high", "high": "low"}
    for a in ALTERNATIVES:
        other = Alternative(-a.shift, a.high, a.low).words
        if a.words.startswith("a stated 50% "):
            share, reflected = (float(re.search(r"to ([\d.]+)%", words)[1]) for words in (a.words, other))
            assert share + reflected == pytest.approx(100.0, abs=0.2)
            continue
        kind = a.words.split(":")[0].split(",")[0]
        last = kind.split()[-1]
        assert other.startswith(kind.replace(last, mirrored.get(last, last)))


# -- the monitor ---------------------------------------------------------------------------------------


def test_a_monitor_fed_in_batches_is_the_e_value_of_all():
    y, c = stream(1000, slope=0.8)
    monitor = cal.calibration_monitor()
    for first in range(0, 1000, 37):
        monitor.update(y[first : first + 37], c[first : first + 37])
    assert monitor.n == 1000
    assert monitor.log_e == pytest.approx(cal.calibration_e_value(y, c, log=True), abs=1e-8)
    n, log_e = monitor.path
    assert n[0] == 0
    assert n[-1] == 1000
    assert log_e[5] == pytest.approx(cal.calibration_e_value(y[:185], c[:185], log=True), abs=1e-8)
    assert monitor.peak == pytest.approx(log_e.max())
    assert monitor.pvalue == pytest.approx(min(1.0, math.exp(-log_e.max())))


def test_monitors_of_parts_merge():
    y, c = stream(900, slope=0.8)
    whole = cal.calibration_monitor().update(y, c)
    parts = [cal.calibration_monitor().update(y[i::3], c[i::3]) for i in range(3)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged.n == 900
    np.testing.assert_allclose(merged.log_ratios, whole.log_ratios, atol=1e-8)
    assert merged.log_e == pytest.approx(whole.log_e, abs=1e-8)
    with pytest.raises(TypeError, match="is not a monitor"):
        merged.merge(1.0)


def test_a_monitor_survives_storage():
    y, c = stream(500, slope=0.7)
    monitor = cal.calibration_monitor(alpha=0.01)
    for first in range(0, 400, 50):
        monitor.update(y[first : first + 50], c[first : first + 50])
    again = cal.CalibrationMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    again.update(y[400:], c[400:])
    monitor.update(y[400:], c[400:])
    assert again.log_e == monitor.log_e
    assert again.alarm_at == monitor.alarm_at
    np.testing.assert_array_equal(again.path, monitor.path)
    with pytest.raises(ValueError, match="3 log_ratios"):
        cal.CalibrationMonitor.from_dict({**monitor.to_dict(), "log_ratios": [0, 0, 0]})


def test_memory_stays_what_it_is():
    monitor = cal.calibration_monitor()
    for _ in range(3 * _PATH):
        monitor.update([1], [0.5])
    n, log_e = monitor.path
    assert len(n) <= _PATH + 1
    assert n[-1] == 3 * _PATH
    assert (np.diff(n) > 0).all()
    assert log_e[-1] == pytest.approx(monitor.log_e)


def test_the_alarm_stays_and_says_where():
    y, c = stream(3000, slope=0.5)
    monitor = cal.calibration_monitor()
    assert monitor.words == "no rows yet"
    assert monitor.log_e == 0.0
    for first in range(0, 3000, 100):
        monitor.update(y[first : first + 100], c[first : first + 100])
    assert monitor.alarm
    n, log_e = monitor.path
    assert monitor.alarm_at == n[np.flatnonzero(log_e >= math.log(20))[0]]
    assert monitor.words.startswith(f"not calibrated (alarm at row {monitor.alarm_at:,}): over-confident")
    before = monitor.alarm_at
    y, c = stream(20_000, 5)
    monitor.update(y, c)
    assert monitor.alarm_at == before
    calibrated = cal.calibration_monitor().update(y, c)
    assert not calibrated.alarm
    assert calibrated.words == "no evidence against calibration so far"


def test_an_impossible_outcome_stays_impossible():
    monitor = cal.calibration_monitor().update([1], [0.0])
    assert monitor.e_value == math.inf
    assert monitor.update([0, 1], [0.3, 0.6]).e_value == math.inf
    other = cal.calibration_monitor().update([1, 0] * 300, [0.5, 0.5] * 300)
    assert other.merge(monitor).alarm
    assert other.pvalue == 0.0


def test_peeking_costs_a_fixed_test_its_level_and_the_monitor_nothing():
    runs, looks = 120, range(20, 401, 20)
    monitored = tested = 0
    for seed in range(runs):
        y, c = stream(400, seed)
        ratios = [log_ratios(cal.predictions(y[i - 20 : i], c[i - 20 : i])) for i in looks]
        log_e = [np.logaddexp.reduce(r) - math.log(342) for r in np.cumsum(ratios, axis=0)]
        monitored += max(log_e) >= math.log(20)
        tested += any(cal.test("spiegelhalter", y[:i], c[:i], method="asymptotic").pvalue < 0.05 for i in looks)
    assert monitored <= 10  # 5% of 120, and two standard errors
    assert tested > 18


def test_a_monitor_of_several_classes_watches_the_top_label():
    y, p, _ = arrays("multi4")
    top = cal.calibration_e_value(y, p, log=True)
    assert cal.calibration_monitor().update(y, p).log_e == pytest.approx(top)
    with pytest.raises(ValueError, match="several binary problems"):
        cal.calibration_monitor(lens="class-wise").update(y, p)
    with pytest.raises(ValueError, match="alpha=5"):
        cal.calibration_monitor(alpha=5)
    with pytest.raises(ValueError, match="whole number"):
        cal.calibration_monitor().update([0, 1], [0.2, 0.7], sample_weight=[0.5, 0.7])


# -- the split e-value ---------------------------------------------------------------------------------


def test_ehl_equals_the_inventors_code_on_their_split():
    (entry,) = parts("emerging", "ehl")
    y, c, _ = arrays(entry["data"])
    assert_close(cal.ehl(y, c, train=np.arange(len(y)) % 2 == 0), entry)


def ehl_slowly(y, c, seen):
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(out_of_bounds="clip").fit(c[seen], y[seen])
    x, inverse = np.unique(c[seen], return_inverse=True)
    value = fit.predict(x)
    size = np.bincount(inverse)
    value = np.where(value == 0, 0.5 / (size[value == 0].sum() + 1), value)
    ones = size[value == 1].sum()
    value = np.where(value == 1, (ones + 0.5) / (ones + 1), value)
    q = np.interp(c[~seen], x, value)
    held = y[~seen], c[~seen]
    return np.prod(np.where(held[0] == 1, q / held[1], (1 - q) / (1 - held[1])))


@pytest.mark.parametrize("decimals", [2, 12])
def test_ehl_is_the_mean_over_random_halves(decimals):
    y, c = stream(200, slope=0.7)
    c = np.clip(np.round(c, decimals), 0.01, 0.99)
    rng, values = generator(4, "halves"), []
    for _ in range(3):
        seen = np.zeros(200, dtype=bool)
        seen[rng.permutation(200)[:100]] = True
        values.append(ehl_slowly(y, c, seen))
    assert cal.ehl(y, c, n_splits=3, rng=4) == pytest.approx(np.mean(values), rel=1e-9)
    assert cal.ehl(y, c, n_splits=3, rng=4, log=True) == pytest.approx(math.log(np.mean(values)), abs=1e-9)
    assert own.ehl_test(y, c, n_splits=3, rng=4).statistic == pytest.approx(np.mean(values), rel=1e-9)


def test_ehl_weights_are_copies_in_the_same_half():
    y, c = stream(200, slope=0.7)
    w = weights_of("1+i%3", 200)
    i = np.repeat(np.arange(200), w.astype(int))
    seen = np.arange(200) % 2 == 0
    got = cal.ehl(y, c, train=seen, sample_weight=w, log=True)
    assert got == pytest.approx(cal.ehl(y[i], c[i], train=seen[i], log=True), abs=1e-8)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"n_splits": 0}, "n_splits=0"), ({"train": [True] * 4}, "all rows or none"), ({"train": [True]}, "train has 1")],
)
def test_bad_options_of_ehl_get_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        cal.ehl([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.4], **options)


def test_one_row_cannot_be_split():
    with pytest.raises(ValueError, match="at least two rows"):
        cal.ehl([1], [0.5])
