"""The advice in error messages works, and every function accepts a map in the same formats."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import RefusedError, UnknownMetricError, first_line
from calibrary.cli.large import read_result
from calibrary.maps import as_map
from calibrary.tables.sources import InputError

RNG = np.random.default_rng(0)
C = RNG.random(80)
Y = (RNG.random(80) < C**1.5).astype(int)
P = RNG.dirichlet(np.ones(4), 60)
K = RNG.integers(0, 4, 60)


class Halved:
    """A map of the user's own."""

    def fit(self, y, c, sample_weight=None):
        self.mean = np.average(y, weights=sample_weight)
        return self

    def predict(self, c):
        return 0.5 * np.asarray(c) + 0.5 * self.mean


# -- messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\ntwo"), "one"),
        (ValueError("\n  one  \ntwo"), "one"),
        (OSError(), "OSError"),
        (RuntimeError("\n"), "RuntimeError"),
    ],
)
def test_the_first_line_of_an_error(error, line):
    assert first_line(error) == line


def test_a_file_whose_error_has_no_message_is_refused_in_one_sentence(monkeypatch, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    path = tmp_path / "result.parquet"
    path.write_bytes(b"")

    def fails(*args, **options):
        raise OSError

    monkeypatch.setattr(dataset, "dataset", fails)
    with pytest.raises(InputError, match=r"result.parquet cannot be read as parquet \(OSError\)$"):
        read_result(path)
    with pytest.raises(RefusedError, match=r"cannot be read as parquet \(OSError\)"):
        cal.scale.scan(str(path), label="y", prob="p")


def test_two_class_names_need_pos_label():
    with pytest.raises(ValueError, match="pos_label='benign' or pos_label='malignant'"):
        cal.brier_score(["benign", "malignant"] * 5, [0.1, 0.9] * 5)


def test_rows_that_nearly_sum_to_one_are_not_taken_for_logits():
    half = np.array([[0.5, 0.3, 0.1973]] * 4)
    with pytest.raises(ValueError, match=r"sums to 0.9973, not 1, and rounding does not explain it: pass rescale=True"):
        cal.brier_score([0, 1, 2, 0], half)
    assert cal.brier_score([0, 1, 2, 0], half / half.sum(axis=1, keepdims=True)) > 0
    with pytest.raises(ValueError, match="for logits use"):
        cal.brier_score([0, 1, 2, 0], half * 0.5)


def test_a_metric_for_two_classes_advises_what_works_for_four():
    with pytest.raises(ValueError, match="general_ls is defined for two classes and y_prob has 4") as caught:
        cal.compute("general_ls", K, P)
    assert "top-label" not in str(caught.value)
    merged = cal.compute("general_ls", K, P, lens=cal.lens.partition([[0], [1, 2, 3]]))
    assert merged == pytest.approx(np.mean(((K != 0) - P[:, 1:].sum(axis=1)) ** 2))


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize(
    "entry", [e for e in cal.catalogue.values() if e.data_type == "predictions" and not e.needs], ids=lambda e: e.id
)
def test_an_advised_lens_is_taken(entry):
    """If a metric refuses lens="binary" for four classes, every lens that its message names works."""
    with pytest.raises(ValueError, match=r"classes|columns|not defined for") as caught:
        entry(K, P, lens="binary")
    for lens in set(re.findall(r"lens='([a-z-]+)'", str(caught.value))) - {"binary"}:
        entry.lens_for(cal.predictions(K, P), entry.question_of({"lens": lens}))


@pytest.mark.parametrize(
    ("figure", "data", "option"),
    [("plot_reliability", (Y, C), "bars"), ("plot_simplex", (K % 3, np.full((60, 3), 1 / 3)), "bars")],
)
def test_a_figure_names_itself_when_an_option_is_unknown(figure, data, option):
    pytest.importorskip("matplotlib")
    with pytest.raises(TypeError, match=f"{figure} has no option '{option}'"):
        getattr(cal.plots, figure)(*data, **{option: "x"})
    with pytest.raises(TypeError, match="this figure has no option 'colors'"):
        cal.plots.smooth_data(Y, C, colors=3)


# -- what map= takes ---------------------------------------------------------------------------------


def test_map_takes_a_name_an_object_and_a_function():
    curve = as_map("platt").fit(Y, C)
    by_name = cal.compute("map_error", Y, C, map="platt")
    assert cal.compute("map_error", Y, C, map=as_map("platt")) == by_name
    assert cal.compute("map_error", Y, C, map=lambda c: curve.predict(c)) == pytest.approx(by_name)
    assert cal.compute("map_error", Y, C, map=lambda c: c) == 0.0
    for id in ("ici", "ep", "eci"):
        assert cal.compute(id, Y, C, map=lambda c: c) == 0.0
    with pytest.raises(
        TypeError, match="map=7 is not valid: pass a map's name, a function of the confidences, or an object"
    ):
        cal.compute("ici", Y, C, map=7)
    with pytest.raises(ValueError, match=r"map returned shape \(\)"):
        cal.compute("ici", Y, C, map=lambda c: 0.5)
    with pytest.raises(TypeError, match="map is an object, so 'span' must be set on it"):
        cal.compute("ici", Y, C, map=lambda c: c, span=0.5)


def test_consistency_resampling_takes_the_same_things():
    p = cal.predictions(Y, C)
    draws = {"n_resamples": 39, "rng": 0}
    fitted = as_map("platt").fit(Y, C)
    by_name = cal.expected_by_chance("bs", None, p, calibration_map="platt", **draws).draws
    for same in (as_map("platt"), fitted, lambda c: fitted.predict(c)):
        np.testing.assert_allclose(cal.expected_by_chance("bs", None, p, calibration_map=same, **draws).draws, by_name)
    mine = cal.expected_by_chance("bs", None, p, calibration_map=Halved(), **draws).draws
    known = cal.expected_by_chance("bs", None, p, calibration_map=lambda c: 0.5 * c + 0.5 * Y.mean(), **draws).draws
    np.testing.assert_allclose(mine, known)
    assert cal.test("ece", Y, C, method="consistency", calibration_map="isotonic", **draws).pvalue > 0
    with pytest.raises(TypeError, match="calibration_map='platt' must be fitted to labels, and there are none"):
        cal.expected_by_chance("bs", None, C, calibration_map="platt", **draws)


def test_a_map_of_several_classes_is_fitted_class_by_class():
    from calibrary.maps import mapped

    p = cal.predictions(K, P)
    each = np.column_stack([as_map("platt").fit(k == K, P[:, k]).predict(P[:, k]) for k in range(4)])
    np.testing.assert_allclose(mapped("platt", p), each / each.sum(axis=1, keepdims=True))
    values = cal.expected_by_chance("bs", None, p, calibration_map="platt", n_resamples=39, rng=0).draws
    assert np.isfinite(values).all()


# -- what somebody gave fills no page ---------------------------------------------------------------

LONG, HUGE = "x" * 100_000, 10**5000
UNBOUNDED = {
    "n_bins": lambda y, p: cal.compute("ece", y, p, n_bins=HUGE),
    "norm": lambda y, p: cal.compute("ece", y, p, norm=HUGE),
    "labels": lambda y, p: cal.compute("ece", y, p, labels=list(range(100_000))),
    "lens": lambda y, p: cal.compute("ece", y, p, lens=LONG),
    "binning": lambda y, p: cal.compute("ece", y, p, binning=LONG),
    "pos_label": lambda y, p: cal.compute("ece", y, p, pos_label=LONG),
    "classes": lambda y, p: cal.compute("ece", [LONG, "y"] * 20, p),
    "option": lambda y, p: cal.compute("ece", y, p, **{LONG: 1}),
    "metric": lambda y, p: cal.evaluate(y, p, metrics=[LONG]),
    "method": lambda y, p: cal.interval("bs", y, p, method=LONG),
    "level": lambda y, p: cal.interval("bs", y, p, confidence_level=HUGE),
    "blocks": lambda y, p: cal.interval("bs", y, p, blocks=HUGE),
    "n_resamples": lambda y, p: cal.interval("ece", y, p, n_resamples=HUGE),
    "rng": lambda y, p: cal.interval("bs", y, p, rng=-HUGE),
}


@pytest.mark.parametrize("argument", UNBOUNDED)
def test_a_sentence_about_a_huge_value_is_short(argument):
    with pytest.raises((RefusedError, UnknownMetricError)) as caught:
        UNBOUNDED[argument]([0, 1] * 20, [0.2, 0.7] * 20)
    assert 20 < len(str(caught.value)) <= 1_600


def test_the_middle_of_a_sentence_is_left_out_and_its_advice_stays():
    listed = RefusedError(f"labels={list(range(9_999))} must name each class once")
    assert str(listed).startswith("labels=[0, 1, 2")
    assert str(listed).endswith("9998] must name each class once")
    assert str(RefusedError(f"lens={LONG!r}: choose another")) == f"lens='{'x' * 74}...{'x' * 18}': choose another"
    assert str(pickle.loads(pickle.dumps(listed))) == str(listed)


def test_a_warning_is_at_the_line_of_the_user():
    with pytest.warns(cal.CalibrationWarning) as given:
        cal.predictions([0, 1] * 10, [0.0, 1.0] * 10)
    with pytest.warns(DeprecationWarning, match="generalised_squared_error is an old name") as old:
        assert cal.generalised_squared_error is cal.generalized_squared_error
    assert {each.filename for each in (*given, *old)} == {__file__}
