"""Every option of a public function is checked before anything is computed, also where it has no effect."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import calibrary as cal
from each import each

N = 60
RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, N)
Y = (RNG.random(N) < P).astype(int)
MEMBERS = np.clip(P[:, None] + RNG.normal(0, 0.05, (N, 4)), 0.01, 0.99)
OUTSIDE = [None if i % 4 == 0 else int(v) for i, v in enumerate(Y)]
HUMAN = np.where(np.arange(N) % 2, np.nan, Y)
ANSWERS = [list(RNG.choice(list("AB"), 5)) for _ in range(N)]
RIGHT = np.array([[answer == "A" for answer in row] for row in ANSWERS])
FEW = {"n_resamples": 19, "rng": 0}
CLASSES, VECTORS = np.arange(N) % 3, RNG.dirichlet([1, 1, 1], N)
TRUTH = cal.boxes(
    [0, 0, 1, 1], [0, 1, 0, 1], [[0, 0, 10, 10], [20, 20, 10, 10], [0, 0, 10, 10], [5, 5, 20, 20]], image_size=(99, 99)
)
FOUND = cal.boxes(
    [0, 0, 1, 1],
    [0, 1, 0, 1],
    [[0, 0, 10, 10], [20, 22, 10, 10], [30, 0, 10, 10], [5, 5, 20, 22]],
    score=[0.9, 0.6, 0.4, 0.8],
)
MATCHES = cal.match_detections(TRUTH, FOUND)

#: A public function: a call that it answers.
CALLS = {
    "evaluate": ((Y, P), {"metrics": ["bs"]}),
    "calibration_monitor": ((), {}),
    "expected_by_chance": (("ece", Y, P), FEW),
    "compare": (("bs", Y, P, P * 0.9), FEW),
    "interval": (("ece", Y, P), FEW),
    "verdict": (("ece<0.9", Y, P), FEW),
    "test": (("ece", Y, P), FEW),
    "compute": (("ece", Y, P), {}),
    "judged": (("bs", HUMAN, P), {"judge": Y, **FEW}),
    "sampled_answers": ((ANSWERS, RIGHT), FEW),
    "recommend": ((), {}),
    "recalibration_gain": ((Y, P), {"maps": ["platt"], "rng": 0}),
    "under_shift": (("bs", Y, P, P), FEW),
    "outside_rows": ((OUTSIDE, P), FEW),
    "ensemble": ((Y, MEMBERS), FEW),
    "grade_tests": ((Y, P), {"grades": np.arange(N) % 3}),
    "predictions": ((Y, P), {}),
    "multiple_binomial_test": ((Y, P.round(1)), {}),
    "cumulative_difference": ((Y, P), {}),
    "decision_curve": ((Y, P), {"thresholds": [0.3]}),
    "murphy_curve": ((Y, P), {}),
    "score_decomposition": ((Y, P), {}),
    "confidence_direction": ((Y, P), FEW),
    "honest_band": ((Y, P), {}),
    "ece_knn_curve": ((Y, P), {}),
    "reliability_bins": ((Y, P), {}),
    "smooth_calibration_curve": ((Y, P), {}),
    "matched_detections": ((Y, P), {}),
    "boxes": (([0], [0], [[0, 0, 1, 1]]), {}),
    "match_detections": ((TRUTH, FOUND), {}),
    "horizon": ((P, Y, 0.5), {}),
    "adjust_pvalues": (([0.1, 0.2],), {}),
    "cut": ((P,), {}),
    "power": (("ece", 50), {"error": 0.1, **FEW}),
    "sample_size": (("ece",), {"error": 0.1, **FEW}),
    "consistency_confidence": ((lambda x: x, P), {"eps": 0.1, "n_draws": 5}),
    "check_propriety": (("bs",), {}),
    "scoring_function": (("bs",), {}),
    "report": ((Y, P), {"metrics": ["bs"], "n_resamples": 0}),
    "shift_curve": (("bs", Y, P), {"groups": CLASSES, "n_resamples": 99, "rng": 0}),
    "plan": (("oe",), {"width": 0.2, "prevalence": 0.3}),
    "pooled": ((Y, P), {"centre": CLASSES, "metrics": ["oe"]}),
    "set_coverage_curve": ((CLASSES, VECTORS), {}),
    "regret_curve": ((Y, P), {}),
    "d_ece_map": ((MATCHES,), {}),
    "detection_thresholds": ((MATCHES,), {}),
    "code_matrix": ((3,), {}),
    "hinge_loss_scores": ((Y, P), {}),
    "dawid_sebastiani_score_moments": ((P, P), {"std": P}),
    "normalized_squared_error_score_moments": ((P, P, P), {}),
    "consistency_confidence_logits": ((P,), {"eps": 0.1}),
}
#: Arguments with a value for every row or class, which functions read themselves.
DATA = frozenset((
    "by", "features", "grades", "grid", "groups", "inclusion", "judge", "label", "labels", "metrics", "pos_label",
    "prob", "sample_weight", "target", "thresholds", "time", "units", "y_prob", "y_true", "settings", "target_features",
))  # fmt: skip
SHARED = ("average", "lens", "percent", "rng", "weight_type")
WRONG = ("zzz", object(), ["zzz"], float("nan"))
#: Options that can be a list of any names, of images, categories, folds or rows of a code.
NAMES = {
    ("boxes", "images"),
    ("boxes", "categories"),
    ("regret_curve", "folds"),
    ("decision_loss", "folds"),
    ("ls_ecoc_r", "code"),
}
#: Settings of a report that its signature does not show.
RARE = {"report": ("average", "r", "ordinal", "weight_type", "blocks")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_option_is_refused_in_a_sentence_and_a_default_is_not(name):
    function, (arguments, given) = getattr(cal, name), CALLS[name]
    parameters = inspect.signature(function).parameters
    own = [n for n, p in parameters.items() if n not in DATA and p.kind is not p.VAR_KEYWORD][len(arguments) :]
    own = [n for n in own if parameters[n].default is not inspect.Parameter.empty] + [*RARE.get(name, ())]
    shared = [n for n in SHARED if n not in parameters and "options" in parameters]
    function(*arguments, **given)
    for option in (n for n in own if n not in given and n in parameters):
        function(*arguments, **{**given, option: parameters[option].default})
    for option in (*own, *shared):
        _refused(name, function, arguments, given, option)


def _refused(name, function, arguments, given, option):
    for wrong in WRONG:
        if wrong == ["zzz"] and (name, option) in NAMES:
            continue
        try:
            function(*arguments, **{**given, option: wrong})
        except (cal.RefusedError, cal.UnknownMetricError):
            continue
        pytest.fail(f"{name}({option}={wrong!r}) was accepted")


def _rooms():
    """Calls of public functions and classes of ``plots`` and ``scale``, and of classes: name, call, inputs."""
    pytest.importorskip("matplotlib")
    from calibrary import plots, scale

    found = cal.shift_curve("bs", Y, P, groups=CLASSES, n_resamples=99, rng=0)
    several, both = {"a": (Y, P), "b": (Y, P * 0.9)}, (cal.predictions(Y, P), cal.predictions(Y, P * 0.9))
    inputs = {
        "plot_judged": cal.judged("bs", HUMAN, P, judge=Y, **FEW), "plot_sampled": cal.sampled_answers(ANSWERS, RIGHT),
        "plot_shift_curve": found, "plot_monitor": cal.calibration_monitor(), "monitor_data": cal.calibration_monitor(),
        "plot_metrics": cal.evaluate(Y, P, metrics=["ece"]), "hybrid_curve": several, "d_ece_map_data": MATCHES,
        "plot_d_ece_map": MATCHES, "detection_reliability": MATCHES, "plot_detection_reliability": MATCHES,
    }  # fmt: skip
    inputs["plot_forest"] = inputs["plot_pooled_curve"] = cal.pooled(Y, P, centre=CLASSES, metrics=["oe"])
    more = {"segments": {"by": CLASSES}, "recalibration": {"maps": ["platt"]}, "reliability_map": {"features": VECTORS}}
    more["grouping"] = {"features": P[:, None]}
    for name in (n for n in plots.__all__ if inspect.isfunction(getattr(plots, n))):
        subject = name.removeprefix("plot_").removesuffix("_data")
        if subject in ("alternative", "draw", "embedded", "figure", "validation", "dot"):
            continue
        if name in inputs:
            given = (inputs[name],)
        elif subject in ("class", "set_coverage", "simplex", "simplex_maps", "small_multiples", "reliability_map"):
            given = (CLASSES, VECTORS)
        else:
            others = {"null": ("ece", Y, P), "murphy_difference": both, "theory": (), "tree": ()}
            given = others.get(subject, (Y, P))
        yield f"plots.{name}", getattr(plots, name), given, more.get(subject, {})
    state = scale.State(240, by="g").update(Y, P, by={"g": "a"})
    yield "scale.segment_table", scale.segment_table, (state,), {}
    yield "scale.segment_sql", scale.segment_sql, ("t",), {}
    yield "scale.sql", scale.sql, ("t",), {"label": "y", "prob": "p"}
    yield "scale.State", scale.State, (), {}
    yield "scale.State.update", scale.State().update, (Y, P), {}
    yield "scale.VectorState", scale.VectorState, (3,), {}
    yield "scale.VectorState.update", scale.VectorState(3).update, (CLASSES, VECTORS), {}
    yield "CalibrationMonitor", cal.CalibrationMonitor, (), {}
    yield "ReliabilityMap", cal.ReliabilityMap, (), {}
    yield "MonteCarlo", cal.MonteCarlo, (), {}
    yield "Bootstrap", cal.Bootstrap, (), {}
    yield "Inversion", cal.Inversion, (), {}
    yield "Triangle", cal.Triangle, (), {}
    yield "Recalibrator", lambda map="platt", **asked: cal.Recalibrator(map, **asked).fit(P, Y), (), {}


#: What is read with the data or by the function that draws them, is state of an object, or can be any object.
_READ_LATER = DATA | {"rng", "fixed", "n", "log_ratios", "peak", "alarm_at", "calibration_map", "ids", "ends"}


@pytest.mark.filterwarnings("ignore")
def test_figures_and_classes_and_states_refuse_wrong_options_too():
    asked = 0
    for name, function, arguments, given in _rooms():
        function(*arguments, **given)
        parameters = inspect.signature(cal.Recalibrator if name == "Recalibrator" else function).parameters
        for option in list(parameters)[len(arguments) :]:
            kind = parameters[option].kind
            if option in _READ_LATER or option[0] == "_" or kind in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL):
                continue
            asked += 1
            for wrong in (object(), float("nan")):
                try:
                    function(*arguments, **{**given, option: wrong})
                except (cal.RefusedError, cal.UnknownMetricError):
                    continue
                pytest.fail(f"{name}({option}={wrong!r}) was accepted")
    assert asked > 150


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("id", sorted(set(cal.catalogue) - {"eice", "knn_reliability", "consistency"}))
def test_a_metric_takes_its_defaults_and_refuses_wrong_options(id):
    function = cal.catalogue[id].function
    data, inputs = _call_of(function)
    taken = inspect.signature(function).parameters
    for option in (n for n, p in taken.items() if p.kind is p.KEYWORD_ONLY and n not in DATA and n not in inputs):
        function(*data, **inputs, **{option: taken[option].default})
        _refused(id, function, data, inputs, option)


def _call_of(function):
    for data in ((Y, P), (CLASSES, VECTORS), (MATCHES,)):
        for inputs in ({}, {"features": P[:, None]}, {"groups": CLASSES}, {"by": CLASSES}):
            try:
                function(*data, **inputs)
            except (ValueError, TypeError):
                continue
            return data, inputs
    pytest.fail(f"no data for {function.__name__}")


@each(sorted(cal.catalogue))
def test_a_metric_checks_what_has_no_effect_on_two_classes(id):
    function = cal.catalogue[id].function
    taken = inspect.signature(function).parameters
    for option in ("average", "lens", "percent", "rescale"):
        if option in taken:
            with pytest.raises(ValueError, match=f"{option}='zzz'"):
                function(Y, P, **{option: "zzz"})


def test_what_contradicts_is_refused():
    with pytest.raises(ValueError, match=r"r=2 has no effect with lens='top-label': leave it out"):
        cal.ece(Y, P, lens="top-label", r=2)
    with pytest.raises(ValueError, match=r"labels=\[0, 1\] says that y_prob is the probability of 1, and pos_label=0"):
        cal.brier_score(Y, P, labels=[0, 1], pos_label=0)
    assert cal.brier_score(Y, P, labels=[1, 0], pos_label=0) == cal.brier_score(Y, P, labels=[1, 0])
    with pytest.raises(ValueError, match="prevalence_outside= has no effect without rows outside"):
        cal.ensemble(Y, MEMBERS, prevalence_outside=0.3, **FEW)
    with pytest.raises(ValueError, match=r"confidence_level=95 is outside \(0, 1\): .*such as 0.95 for 95%"):
        cal.evaluate(Y, P, metrics=["bs"], confidence_level=95)
    with pytest.raises(ValueError, match="bs has no bins: leave n_bins out"):
        cal.judged("bs", HUMAN, P, judge=Y, n_bins=5, **FEW)
    with pytest.raises(ValueError, match="covariance= is for outcomes that are vectors"):
        cal.dawid_sebastiani_score_moments(P, P, std=P, covariance=P)
    with pytest.raises(ValueError, match="law='zzz': pass the two numbers of Beta"):
        cal.power("ece", 50, error=0.1, law="zzz")


@pytest.mark.parametrize("verb", ["interval", "compare", "verdict", "judged", "shift_curve"])
def test_the_options_of_the_verb_are_suggested_too(verb):
    calls = {"compare": ("ece", Y, P, P), "verdict": ("ece < 0.1", Y, P), "shift_curve": ("ece", Y, P, P)}
    more = {"judge": Y} if verb == "judged" else {}
    with pytest.raises(cal.RefusedCallError, match=r"ece has no option 'n_resample': did you mean 'n_resamples'"):
        getattr(cal, verb)(*calls.get(verb, ("ece", Y, P)), n_resample=3, **more)
