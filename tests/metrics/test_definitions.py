"""Every metric of the catalogue against its slow literal definition, on small data sets of every kind."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.numerics.draw import generator
from definitions import DEFINITIONS
from each import FULL, each, each_of_id
from golden import arrays, assert_close, entries, keywords, number
from metric_cases import binary

ENTRIES = {id: e for id, e in cal.catalogue.items() if e.family != "detection"}


# -- data --------------------------------------------------------------------------------------------


def certain(n, seed):
    """Some confidences are exactly 0, 1/2 or 1, most of them right."""
    y, c = binary(n, seed, 17)
    c[: n // 3] = np.resize([0.0, 1.0, 0.5, 1.0, 0.0], n // 3)
    y[: n // 3] = np.resize([0, 1, 1, 1, 0, 0, 1, 0], n // 3)
    return y, c


def multi(n, k, seed, tenths=False):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.8), n)
    if tenths:  # equal rows, equal classes, and zeros
        p = np.array([rng.multinomial(10, row) for row in p]) / 10
    return np.array([rng.choice(k, p=row) for row in 0.7 * p + 0.3 / k]), p


def even():
    """Every tenth equally often: means, cuts and distances fall on values, up to rounding."""
    c = np.tile(np.arange(1, 10) / 10, 5)
    return (np.random.default_rng(11).random(45) < c**1.5).astype(int), c


DATA = {
    "random": lambda: binary(41, 1, 17),
    "ties": lambda: binary(60, 2, 1),
    "even": even,
    "hundredths": lambda: binary(53, 3, 2),
    "few": lambda: binary(5, 4, 2),
    "certain": lambda: certain(40, 5),
    "four classes": lambda: multi(50, 4, 6),
    "tied rows": lambda: multi(60, 3, 7, tenths=True),
    "few rows": lambda: multi(6, 3, 8),
}


#: Metrics that need hundreds of fits each.
SLOW = ("ece_pl", "ece_pl3", "ece_fott")
#: Metrics whose definition takes seconds on nine kinds of data.
LONG = () if FULL else ("skde", "lower_distance")


def inputs(id, y, p):
    """What a metric needs beyond labels and probabilities."""
    rng, n = np.random.default_rng(9), len(y)
    return {
        "features": lambda: {"features": np.round(rng.normal(size=(n, 2)), 1)},
        "groups": lambda: {"groups": rng.integers(0, 3, n)},
        "model": lambda: {"individual": rng.random(n)},
        "consistency": lambda: {"consistency": p[rng.permutation(n)]},
        "query": lambda: {"k": min(15, n)},
        "by": lambda: {"by": {"site": rng.choice(["north", "west"], n), "age": rng.normal(50, 10, n)}},
        "folds": lambda: {"folds": np.arange(n) % 5},
        "halves": lambda: {"train": np.arange(n) % 2 == 0},
        "distributions": dict,  # labels are enough; shares are tested below
    }


def needed(id, y, p):
    made = inputs(id, y, p)
    dealt = {"calibration_loss": "folds", "variational_error": "folds", "ehl": "halves"}  # so that weights leave them
    needs = [need for need in (*ENTRIES[id].needs, dealt.get(id)) if need not in (None, "order")]
    return {k: v for need in needs for k, v in made[need]().items()}


def rows_of(options, index):
    """The options with those that belong to rows cut down to some of them."""
    per_row = ("features", "groups", "individual", "consistency", "soft_target", "proximity", "clusters", "rank_by",
               "folds", "train")  # fmt: skip
    some = {k: v[index] for k, v in options.items() if k in per_row and isinstance(v, np.ndarray)}
    if options.get("loo") is not None:
        some["loo"] = np.asarray(options["loo"])[:, index]
    if options.get("by") is not None:
        some["by"] = {name: column[index] for name, column in options["by"].items()}
    if options.get("W") is not None:
        some["W"] = options["W"][index] if options["W"].ndim == 1 else options["W"][np.ix_(index, index)]
    return {**options, **some}


def agree(got, want, definition):
    if isinstance(want, list) and isinstance(want[0], dict):  # one result per class
        for one, expected in zip(got, want, strict=True):
            agree(one, expected, definition)
        return
    if isinstance(want, dict):  # a result of several numbers, by name
        for name, number in want.items():
            agree(getattr(got, name), number, definition)
        return
    np.testing.assert_allclose(
        np.asarray(got, dtype=float), np.asarray(want, dtype=float), rtol=definition.rtol, atol=definition.atol
    )


def check(id, y, p, w=None, /, **options):
    """Compare the metric with its definition on the same rows, or on weighted rows and on repeated rows."""
    definition = DEFINITIONS[id]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if w is None:
            got = ENTRIES[id](y, p, **options)
            want = definitions.value(id, y, p, **options)
        else:
            got = ENTRIES[id](y, p, sample_weight=w, **options)
            if "w" in definition.options:
                i = np.flatnonzero(w)
                want = definitions.value(id, y[i], p[i], w=w[i].astype(float), **rows_of(options, i))
            else:
                i = np.repeat(np.arange(len(y)), w)
                want = definitions.value(id, y[i], p[i], **rows_of(options, i))
    agree(got, want, definition)


# -- the tests ---------------------------------------------------------------------------------------


def test_every_metric_has_a_definition_and_every_definition_a_metric():
    assert set(DEFINITIONS) == set(cal.catalogue)


@each(DEFINITIONS)
def test_the_docstring_names_the_definition(id):
    doc = inspect.getdoc(cal.catalogue[id].function)
    notes = doc[doc.index("Notes\n-----\n") : doc.index("Examples\n--------\n")]
    assert f"``tests/definitions.py::{id}``" in notes
    assert doc.count("Notes\n-----\n") == 1


@each(DEFINITIONS)
def test_a_definition_honours_options_that_the_metric_has(id):
    entry = cal.catalogue[id]
    known = {*inspect.signature(entry.function).parameters, "w"}
    known |= {"category", "iou", "missed", "place"} if entry.family == "detection" else set()
    assert set(DEFINITIONS[id].options) <= known
    if DEFINITIONS[id].rtol > 1e-6 or DEFINITIONS[id].atol > 1e-8:
        assert DEFINITIONS[id].why


@each_of_id([(id, data) for id in DEFINITIONS if id in ENTRIES for data in DATA])
def test_the_metric_is_its_definition(id, data):
    y, p = DATA[data]()
    if p.ndim == 2 and ENTRIES[id].default_lens == "binary":
        pytest.skip("does not apply: of two classes only")
    if len(y) < DEFINITIONS[id].least:
        pytest.skip("does not apply: needs more rows")
    if id in SLOW and data not in ("random", "ties", "four classes"):
        pytest.skip("does not apply: takes long, and other data show nothing new")
    if id in LONG and data not in ("ties", "certain", "four classes"):
        pytest.skip("does not apply: takes long, and a full run has the other data")
    y, p = y[: DEFINITIONS[id].most], p[: DEFINITIONS[id].most]
    check(id, y, p, **needed(id, y, p))


@each_of_id([(id, data) for id in DEFINITIONS if id in ENTRIES for data in ("hundredths", "tied rows")])
def test_a_weight_is_the_row_written_as_often(id, data):
    y, p = DATA[data]()
    if p.ndim == 2 and ENTRIES[id].default_lens == "binary":
        pytest.skip("does not apply: of two classes only")
    if ENTRIES[id].weights == "none":
        pytest.skip("does not apply: takes no weights")
    n = DEFINITIONS[id].most // 2
    y, p = y[:n], p[:n]
    check(id, y, p, np.arange(len(y)) % 4, **needed(id, y, p))


#: Options beside the defaults. "on" is the number of classes if only one makes sense, "weights" whether it takes any.
RNG = np.random.default_rng(10)
VARIANTS = {
    "bs": [{"scale": "sum"}, {"scale": "half"}, {"soft_target": "p"}],
    "rbs": [{"scale": "sum"}, {"soft_target": "p"}],
    "stratified_bs": [{"scale": "half"}],
    "nll": [{"scale": "1/K"}, {"base": 2}, {"eps": 0.03}, {"soft_target": "p"}],
    "fl": [{"gamma": 0}, {"gamma": "flsd-53", "eps": 0.01}, {"alpha": 0.25, "on": 2}, {"alpha": [1, 2, 0, 3], "on": 4},
           {"scale": "1/K", "gamma": 3.5}],
    "dual_fl": [{"gamma": 1.5}, {"definition": "review"}, {"eps": 0.02}],
    "spiegelhalter": [{"soft_target": "p"}],
    "fcl": [{"soft_target": "p"}, {"gamma": 1, "lam": 0.3, "eps": 0.01}, {"alpha": 0.25, "on": 2}],
    "ecd": [{"eps": 0.01}],
    "gsb": [{"scale": "sum"}],
    "eo": [{"inverse": True}],
    "sr": [{"cost_proportion": 0.3, "on": 2}, {"cost": [[0, 1, 3], [2, 0, 1], [1, 5, 0.5], [0, 2, 2]], "on": 4}],
    "misclassification_loss": [{"cost_proportion": 0.7, "on": 2},
                               {"cost": [[0, 1], [2, 0], [1, 5], [0, 2]], "on": 4}],
    "dss": [{"eps": 0.01, "on": 2}, {"soft_target": "p", "eps": 0.01, "on": 2}, {"soft_target": "p"}],
    "nses": [{"eps": 0.01, "on": 2}, {"soft_target": "p", "eps": 0.01, "on": 2}, {"soft_target": "p"}],
    "eice": [{"individual": None, "loo": RNG.random((25, 60)), "loo_residuals": RNG.random(25) / 3, "coverage": 0.8},
             {"individual": None, "loo": RNG.random((25, 60)), "loo_residuals": RNG.random(25), "clip": True}],
    "mae": [{"soft_target": "p"}],
    "pwe": [{"norm": 3}, {"norm": math.inf}, {"norm": 0.5, "soft_target": "p"}],
    "l1eps": [{"eps": 0.01}, {"soft_target": "p"}],
    "hinge": [{"variant": "standard"}, {"variant": "raw"}, {"variant": "raw", "soft_target": "p"}],
    "huber": [{"eps": 0.3}, {"soft_target": "p"}],
    "silf": [{"eps": 0.3, "beta": 0.5}, {"soft_target": "p"}],
    "asymmetric_ls": [{"under": 0.5, "over": 3}, {"soft_target": "p"}],
    "general_ls": [{"W": w, "on": 2, "weights": False} for w in (RNG.random((60, 60)), RNG.random(60))],
    "pss": [{"alpha": 3.5}, {"alpha": 1.2, "form": "loss"}],
    "ps": [{"alpha": 3}, {"alpha": 1.5, "form": "unit"}, {"alpha": 3, "form": "literal"}],
    "pls": [{"form": "unit"}],
    "rps": [{"normalize": False}, {"soft_target": "p"}],
    "sarps": [{"definition": "review"}, {"soft_target": "p"}],
    "consistency": [{"metric": m} for m in ("nll", "mae", "rps", "huber", "dss", "nses", "fcl", "spiegelhalter", "fl",
                                               "dual_fl", "ecd", "sr", "misclassification_loss", "pss", "ps", "pls",
                                               "gsb", "mdca")]
                   + [{"consistency": None, "eps": 0.7, "noise": noise} for noise in ("gaussian", "uniform")],
    "ece": [{"norm": 2}, {"norm": math.inf}, {"binning": "mass", "mass_rule": "split", "n_bins": 7},
            {"binning": "mass", "mass_rule": "round", "n_bins": 7},
            {"binning": "mass", "mass_rule": "quantile", "n_bins": 7},
            {"binning": "area", "n_bins": 5}, {"binning": "unique"}, {"binning": "sweep"},
            {"binning": "points", "points_per_bin": 9}, {"closed": "left", "n_bins": 10},
            {"edges": [0, 0.25, 0.3, 0.8, 1.0]}],
    "mce": [{"n_bins": 10, "closed": "left"}, {"binning": "mass", "mass_rule": "split"}],
    "ace": [{"norm": 2, "n_bins": 6}, {"mass_rule": "split", "norm": math.inf}],
    "tace": [{"threshold": 0.3, "n_bins": 4}, {"norm": 2, "mass_rule": "split"}],
    "ice": [{"alpha": 0.3, "n_bins": 8}, {"binning": "mass"}],
    "rbece": [{"min_count": 3}, {"min_count": 4, "n_bins": 10}],
    "ece_lb": [{"norm": 2, "n_bins": 9}, {"norm": math.inf}, {"binning": "mass"}],
    "ece_sweep": [{"base": "width"}, {"norm": 2}],
    "cece": [{"norm": 2, "n_bins": 7}, {"binning": "mass"}],
    "esce": [{"convention": "mcs"}],
    "wsmcs": [{"group": "sum"}, {"group": "total", "convention": "mcs"}],
    "mvms": [{"min_count": 10}, {"min_count": 8, "min_leaf": 3, "split": "median"}, {"min_count": 20, "distance": "l1"},
             {"min_count": 15, "distance": "l2"}],
    "ece_fott": [{"base": "width", "max_bins": 12}, {"base": "width", "empty": "identity", "max_bins": 12},
                 {"roof": "flat", "norm": 2, "max_bins": 10, "cv": 5}, {"n_bins": 6, "base": "width"},
                 {"folds": "rank", "tolerance": 0.02, "max_bins": 15}, {"rng": 3, "max_bins": 8},
                 {"roof": "free", "max_bins": 8}, {"roof": "free", "base": "width", "empty": "identity", "max_bins": 9},
                 {"roof": "free", "n_bins": 3, "norm": 2}],
    "rice": [{"width": 0.3}, {"width": 1.0}, {"width": 0.0625}],
    "sice": [{"eps": 0.2}, {"k_max": 2}],
    "ece_averaged": [{"widths": [0.03, 0.07, 0.25, 1.0]}, {"widths": [0.1], "closed": "left"}],
    "ece_at_k": [{"k": 7}, {"k": 0.29}, {"k": 30, "n_bins": 4}, {"k": 20, "rank_by": RNG.random(60).round(1)}],
    "avg_ece_at_l": [{"l": 30, "step": 7}, {"n_bins": 3, "step": 4, "rank_by": RNG.random(60).round(1)}],
    "sbece": [{"norm": 1, "n_bins": 7, "tau": 0.3}, {"label_binned": True}, {"decay_factor": 80.0, "norm": 3}],
    "dece": [{"tau": 0.1, "n_bins": 7, "norm": 2}, {"accuracy": "soft", "tau_a": 20.0, "eps": 1e-6, "on": 4},
             {"confidence": "logsumexp", "sharpness": 30.0, "on": 4}],
    "ce2_db": [{"definition": "review", "n_bins": 6}, {"root": True, "binning": "width"}, {"mass_rule": "floor"}],
    "ece_db": [{"n_bins": 6}, {"binning": "width"}, {"mass_rule": "floor"}],
    "piece": [{"n_bins": 4, "n_proximity_bins": 3}, {"binning": "grid", "n_bins": 5, "n_proximity_bins": 4},
              {"n_neighbors": 3, "n_bins": 3, "reference": RNG.normal(size=(20, 2))},
              {"features": None, "proximity": RNG.integers(0, 7, 60), "n_bins": 3, "n_proximity_bins": 3}],
    "proximity_bias": [{"share": 0.5, "n_neighbors": 4}, {"features": None, "proximity": RNG.integers(0, 7, 60)},
                       {"reference": RNG.normal(size=(20, 2)), "share": 0.31}],
    "pce": [{"loss": "squared"}, {"groups": RNG.integers(0, 4, (60, 3)), "partition_weights": [1, 2, 5]}],
    "gce": [{"loss": "point-gap", "norm": 2}, {"loss": "rejection", "alpha": 0.2, "n_bins": 5, "closed": "left"},
            {"norm": math.inf, "binning": "mass", "mass_rule": "split"}],
    "hl": [{"variance": "exact"}, {"binning": "width", "closed": "left", "n_bins": 7}, {"mass_rule": "split"}],
    "tcal": [{"n_bins": 4}],
    "tce": [{"strategy": "pava"}, {"strategy": "quantile", "n_bins": 7}, {"strategy": "uniform", "alpha": 0.3},
            {"min_count": 5, "n_max": 20, "percent": True, "alpha": 0.2},
            {"min_count": 4, "n_max": 9, "last_bin": "strict"},
            {"min_count": 6, "last_bin": "released"}, {"min_count": 1, "n_max": 30}],
    "calbin": [{"window": 7}, {"window": 11, "inner": "bin"}, {"window": 4, "definition": "review"}],
    "ece_knn": [{"n_neighbors": 1}, {"n_neighbors": 12}, {"n_neighbors": 500}],
    "hcs": [{"beta": 3.0, "n_bins": 7}],
    "ecce_mad": [{"ties": "stable"}], "ecce_r": [{"ties": "stable"}],
    "msce": [{"kernel": k, "bandwidth": 0.2} for k in definitions.DENSITIES]
            + [{"bandwidth": rule} for rule in ("normal", "normal-sd", "median", "adaptive", "cv")]
            + [{"leave_one_out": True, "kernel": "uniform", "bandwidth": 0.05}],
    "sece": [{"kernel": "triweight", "bandwidth": "normal-sd"}, {"bandwidth": "median"},
             {"leave_one_out": True, "bandwidth": 0.1}],
    "smece": [{"sigma": 0.3}, {"sigma": 0.02}, {"sigma": 0.1, "grid": 50}, {"grid": 40}],
    "dkde": [{"norm": 2, "bandwidth": 0.1}, {"bandwidth": "loo-mle", "root": True}, {"bandwidth": 1e-3},
             {"norm": 1, "debias": True, "bandwidth": 0.05}, {"norm": 2, "debias": True, "bandwidth": 0.02},
             {"norm": 2, "debias": True, "bandwidth": 1e-4}, {"norm": 2, "debias": True, "root": True},
             {"norm": 3, "bandwidth": 0.1}, {"norm": 1.5, "bandwidth": 0.1, "root": True}],
    "bkde": [{"norm": 1, "debias": True, "bandwidth": 0.1}, {"norm": 1, "debias": True},
             {"norm": 3, "bandwidth": 0.1}, {"norm": 1, "bandwidth": 0.1}, {"norm": 2, "debias": False},
             {"cross_term": "label", "bandwidth": 0.05},
             {"bandwidth": "cv"}, {"bandwidth": 1e-4}],
    "mmce": [{"kernel": "gaussian", "squared": True}, {"bandwidth": "median"}, {"weighted": True, "bandwidth": 0.01}],
    "lkce": [{"bandwidth": 0.05, "squared": True}, {"bandwidth": "median"}],
    "skce_b": [{"kernel": "gaussian", "bandwidth": 0.3}, {"metric": "euclidean", "include_self": True},
               {"matrix": [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 0.5], [0, 0, 0.5, 1]], "on": 4}],
    "skce_uq": [{"kernel": "gaussian"}, {"metric": "euclidean", "bandwidth": 0.1}, {"include_self": True},
                {"matrix": [[2, 1], [1, 3]], "on": 2}],
    "skce": [{"estimator": "b", "kernel": "gaussian", "bandwidth": 0.3}, {"estimator": "uq", "include_self": True},
             {"estimator": "ul", "metric": "euclidean", "weights": False}, {"matrix": [[2, 1], [1, 3]], "on": 2}],
    "skce_ul": [{"kernel": "gaussian", "metric": "euclidean"}, {"bandwidth": 0.2, "block_size": 5},
                {"matrix": [[2, 1], [1, 3]], "on": 2}],
    "kccsd": [{"operator": o} for o in ("gibbs", "metropolis")] + [{"operator": "difference", "on": 4}]
             + [{"estimator": "b", "kernel": "laplace"}, {"bandwidth": 0.4, "metric": "euclidean"}],
    "skde": [{"norm": 2, "bandwidth": 0.2}, {"kernel": "epanechnikov", "bandwidth": "normal", "reflect": False},
             {"kernel": "gaussian", "bandwidth": 0.05}],
    "sce": [{"lipschitz": 0.3}, {"lipschitz": 20.0}],
    "lsece": [{"sigma": 1.0}],
    "map_error": [{"map": m} for m in definitions.MAPS if m not in ("loess", "pl", "pl3")]
                 + [{"norm": 2}, {"measure": "uniform", "map": "platt"}, {"measure": "uniform"},
                    {"surface": "direct", "degree": 1}, {"span": 0.5, "transform": "logit"}, {"span": 1.3, "cell": 0.5},
                    {"map": "local_linear", "bandwidth": 0.2}, {"map": "rcs", "n_knots": 3}],
    "lower_distance": [{"grid": 11}],
    "error_at_level": [{"at": 0.3}, {"map": "platt", "at": 0.8}, {"map": "isotonic", "at": 0.25}],
    "ici": [{"map": "platt"}, {"span": 0.6}],
    "ep": [{"percentile": 37}, {"map": "platt", "measure": "uniform", "percentile": 100}],
    "e50": [{"map": "isotonic"}], "e90": [{"map": "beta"}], "emax": [{"degree": 1, "map": "loess"}],
    "fott_beta": [{"parameters": "am", "norm": 2}, {"parameters": "ab"}, {"parameters": "a"}],
    "eci": [{"scale": "percent", "reference": 1}, {"scale": "relative"}, {"map": "loess"}, {"n_knots": 4}],
    "ece_pl": [{"loss": "brier", "norm": 2}, {"segments": 3, "ensemble": False}, {"cv": 4, "rng": 5, "tolerance": 0.3},
               {"max_segments": 1}],
    "ece_pl3": [{"segments": 2, "ensemble": False, "norm": 2}, {"cv": 4, "rng": 5, "tolerance": 0.3},
                {"max_segments": 1}],
    "cis": [{"boundary": "clip"}],
    "sbct": [{"measure": "sample"}],
    "pws": [{"covariance": kind} for kind in ("HC0", "HC1", "HC3")] + [{"covariance": "hac", "weights": False},
           {"covariance": "hac", "lags": 3, "weights": False}],
    "ls_ecoc_r": [{"bandwidth": 0.2}, {"bandwidth": 0.1, "map_bandwidth": 0.4, "cluster_size": 5},
                  {"features": RNG.normal(size=(60, 2)), "cluster_size": 4, "bandwidth": 0.3},
                  {"clusters": np.arange(60) // 7, "calibration": "identity", "bandwidth": 0.15},
                  {"code": "pairwise", "bandwidth": 0.3, "on": 4}],
    "atb": [{"norm": 1}, {"debias": True}, {"root": True, "norm": 3}, {"root": True, "debias": True}],
    "decision_loss": [{"map": "platt"},
                      {"map": "beta", "cross_fit": True, "folds": np.arange(60) % 4, "weights": False},
                      {"cross_fit": True, "folds": 4, "rng": 3, "weights": False}],
    "net_benefit": [{"threshold": 0.3}, {"threshold": 0.7, "standardized": True}],
    "bounded_brier": [{"low": 0.1, "high": 0.6}, {"low": 0.25}],
    "bounded_log": [{"low": 0.1, "high": 0.6}, {"low": 0.25}],
    "calibration_loss": [{"map": "platt", "score": "log", "on": 2}, {"map": "isotonic", "score": "log", "on": 2},
                         {"map": "isotonic", "scale": "sum", "on": 2}, {"score": "spherical", "alpha": 3},
                         {"score": "power"}, {"score": "rps"}, {"folds": 4, "rng": 2, "weights": False}],
    "variational_error": [{"map": "isotonic"}, {"map": "platt", "direction": "over"}, {"direction": "under"},
                          {"folds": 4, "rng": 2, "weights": False}],
    "calibration_e_value": [{"log": True}],
    "ehl": [{"log": True}, {"train": None, "n_splits": 4, "rng": 5, "weights": False}],
    "honest_error": [{"confidence_level": 0.6}, {"digits": 1}],
    "multicalibration_error": [{"depth": 1, "n_cuts": 4}, {"min_rows": 3}],
    "multiaccuracy_error": [{"depth": 1, "n_cuts": 4}, {"min_rows": 3}],
    "rank_calibration_error": [{"n_bins": 7}],
    "rms_calibration_error": [{"bin_size": 9}, {"bin_size": 9, "tail": "drop"},
                              {"bin_size": 9, "ties": "cut", "tail": "drop", "weights": False}],
    "ent_ce": [{"base": 2}],
    "set_coverage": [{"level": 0.5}, {"level": 1.0}],
    "grouping_loss": [{"n_bins": 6, "closed": "left"}, {"binning": "mass", "n_bins": 5}],
    "knn_reliability": [{"query": [0.4, 0.6], "k": 20, "on": 2}, {"k": 25, "expected": "query"}],
}  # fmt: skip


def test_every_option_a_definition_honours_is_tried():
    for id, definition in DEFINITIONS.items():
        if id in ENTRIES:
            tried = {name for variant in VARIANTS.get(id, []) for name in variant}
            tried |= set(needed(id, *DATA["few"]()))
            assert {*definition.options} - {"w"} <= tried, id


@each_of_id([(id, variant) for id, some in VARIANTS.items() for variant in some])
def test_options_mean_what_the_definition_says(id, variant):
    variant = dict(variant)
    classes, takes_weights = variant.pop("on", None), variant.pop("weights", ENTRIES[id].weights != "none")
    for data in ("ties", "even", "four classes"):
        y, p = (x[: DEFINITIONS[id].most] for x in DATA[data]())
        k = definitions.columns(p).shape[1]
        if classes not in (None, k) or (k > 2 and ENTRIES[id].default_lens == "binary"):
            continue
        options = {name: p[::-1] if isinstance(v, str) and v == "p" else v for name, v in variant.items()}
        options = rows_of({**needed(id, y, p), **options}, np.arange(len(y)))
        check(id, y, p, **options)
        if takes_weights and data != "even":
            n = min(len(y), DEFINITIONS[id].most // 2)
            check(id, y[:n], p[:n], 1 + np.arange(n) % 3, **rows_of(options, np.arange(n)))


def other_lenses():
    """The lenses of every metric of pairs that are not its default and leave enough rows."""
    for id, definition in DEFINITIONS.items():
        if definition.sees != "pairs" or id in SLOW or id == "honest_error":  # its bounds are joint for all views
            continue
        whole = {"top-label", "class-wise"} - ({"class-wise"} if "groups" in ENTRIES[id].needs else set())
        split = {"true-class", "predicted-class"} if definition.least == 1 and not ENTRIES[id].needs else set()
        full = set() if definition.full is None else {"full"}
        yield from ((id, lens) for lens in sorted((whole | split | full) & {*ENTRIES[id].lenses} - {definition.lens}))


@each_of_id(other_lenses())
def test_another_lens_shows_the_definition_other_pairs(id, lens):
    y, p = (x[: DEFINITIONS[id].most] for x in DATA["four classes"]())
    check(id, y, p, lens=lens, **needed(id, y, p))


VECTOR_VARIANTS = {
    "ece": [{"n_bins": 4, "norm": 2}, {"n_bins": 3, "distance": "l1"}, {"n_bins": 3, "distance": "l2"}],
    "mce": [{"n_bins": 3, "distance": "l2"}],
    "pce": [{"loss": "squared"}],
    "hl": [{"variance": "exact", "n_bins": 4}, {"reference_class": 2, "n_bins": 5}],
    "tcal": [{"n_bins": 2}, {"n_bins": 5}],
    "variational_error": [{"norm": 2}, {"norm": 1}, {"norm": math.inf}],
}


@each_of_id(
    (id, options, data)
    for id, some in VECTOR_VARIANTS.items()
    for options in some
    for data in ("four classes", "tied rows", "certain")
)
def test_whole_vectors_are_compared_as_the_definition_says(id, options, data):
    y, p = DATA[data]()
    if options.get("reference_class", 0) >= definitions.columns(p).shape[1]:
        pytest.skip("does not apply: no such class")
    check(id, y, p, lens="full", **needed(id, y, p), **options)
    check(id, y, p, 1 + np.arange(len(y)) % 3, lens="full", **needed(id, y, p), **options)


@pytest.mark.parametrize("id", ["dist_ce", "ent_ce", "rank_cs", "bs", "nll", "rps"])
def test_labels_may_be_shares_of_votes(id):
    for k in (2, 4):
        votes, p = (np.random.default_rng(12 + j).dirichlet(np.full(k, 0.7), 40).round(2) for j in range(2))
        votes[:, -1], p[:, -1] = 1 - votes[:, :-1].sum(axis=1), 1 - p[:, :-1].sum(axis=1)
        check(id, np.abs(votes), np.abs(p))
        check(id, np.abs(votes), np.abs(p), np.arange(40) % 3)


# -- fast paths ---------------------------------------------------------------------------------------

#: Replicates of these are computed in ways of their own, or by a mean of losses; what chooses a width once, or takes
#: long, is left to the test of its value.
REPLICATED = [id for id, e in ENTRIES.items() if not (e.costly or e.fixed or e.needs or e.fields)]


def replicates(id, y, p, rows_or_labels):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [definitions.value(id, labels, p[i]) for i, labels in rows_or_labels]


def shown(id, y, p, **lens):
    """The numbers of the definition; if there are several, those that a table shows."""
    value = definitions.value(id, y, p, **lens)
    return [value[field] for field, _ in ENTRIES[id].fields] if isinstance(value, dict) else value


@each_of_id([(id, up) for id, e in ENTRIES.items() if e.replicate is not None for up in (False, True)])
def test_a_fast_path_is_the_definition_of_other_weights_and_labels(id, ascending):
    form = ENTRIES[id].replicate
    labels_only = form.labels_only  # of several classes, where the kernel between all pairs is held
    if labels_only and ascending:
        pytest.skip("does not apply: vectors have no order")
    y, c = (x[: DEFINITIONS[id].most] for x in DATA["four classes" if labels_only else "hundredths"]())
    order = np.argsort(c, kind="stable") if ascending else slice(None)
    y, c = y[order], c[order]
    view = cal.predictions(y, c)
    view.ascending = ascending
    values = form.of_labels(view, {})
    if values is None:
        # some paths need ascending rows, that of intercept and slope finite log odds
        assert not ascending or (id == "cis" and (c.min() <= 0.0 or c.max() >= 1.0))
        return
    rng = np.random.default_rng(7)
    near = {"rtol": DEFINITIONS[id].rtol * 10, "atol": DEFINITIONS[id].atol * 10}
    rows = {} if DEFINITIONS[id].two == "binary" else {"lens": "binary"}  # a form sees the rows as they are
    for _ in range(3):
        w, labels = rng.integers(0, 4, len(y)), rng.integers(0, 4 if labels_only else 2, len(y))
        i = np.repeat(np.arange(len(y)), w)
        if not labels_only:
            np.testing.assert_allclose(
                form.of_weights(view, {})(w.astype(float)[None])[0], shown(id, y[i], c[i], **rows), **near
            )
        np.testing.assert_allclose(values(labels[None])[0], shown(id, labels, c, **rows), **near)


@each_of_id([(id, data) for id in REPLICATED for data in ("hundredths", "four classes")])
def test_bootstrap_replicates_are_the_definition_of_the_rows_drawn(id, data):
    y, p = (x[: DEFINITIONS[id].most] for x in DATA[data]())
    if p.ndim == 2 and ENTRIES[id].default_lens == "binary":
        pytest.skip("does not apply: of two classes only")
    rng = generator(5, "rows")
    drawn = [rng.integers(0, len(y), len(y)) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = cal.interval(id, y, p, method="basic", n_resamples=4, rng=5).draws
    want = replicates(id, y, p, [(i, y[i]) for i in drawn])
    np.testing.assert_allclose(got, want, rtol=DEFINITIONS[id].rtol * 10, atol=DEFINITIONS[id].atol * 10)


@pytest.mark.parametrize("id", [id for id in REPLICATED if ENTRIES[id].null])
def test_null_replicates_are_the_definition_of_the_labels_drawn(id):
    y, c = (x[: DEFINITIONS[id].most] for x in DATA["hundredths"]())
    rng = generator(6, "labels")
    drawn = [(rng.random(len(y)) < c).astype(int) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = cal.test(id, y, c, method="monte-carlo", n_resamples=4, rng=6).null.values
    want = replicates(id, y, c, [(slice(None), labels) for labels in drawn])
    np.testing.assert_allclose(got, want, rtol=DEFINITIONS[id].rtol * 10, atol=DEFINITIONS[id].atol * 10)


# -- the definitions themselves ----------------------------------------------------------------------


def renewed(entry):
    """The options of a golden value with their current names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return cal.catalogue[entry["id"]].with_current_names(entry["params"])


def golden_cases():
    """Golden values of the smallest data sets whose options the definition supports, in proportion to their rows."""
    for family in ("point", "bins_a", "bins_b", "kernel", "curve", "cumulative", "emerging"):
        for entry in entries(family):
            definition = DEFINITIONS.get(entry["id"])
            small = isinstance(entry["data"], dict) or entry["data"] == "binary12"
            if entry["kind"] != "metric" or definition is None or not small:
                continue
            lens = entry.get("lens") in (None, "binary", "full" if definition.sees == "vectors" else "binary")
            entry = {**entry, "params": renewed(entry)}
            honoured = {*definition.options, "sample_weight"} | ({*entry["params"]} if definition.takes_any else set())
            weighted = "sample_weight" in entry["params"] and "w" in definition.options
            if lens and honoured >= {*entry["params"]} and not weighted:
                yield entry


@each(list(golden_cases()), name=lambda e: f"{e['id']}-{e['params']}"[:60])
def test_the_definition_gives_the_golden_value(entry):
    definition, options = DEFINITIONS[entry["id"]], keywords(entry)
    y, p, _ = arrays(entry["data"])
    lens = options.pop("lens", None)
    lens = lens if definition.two != "binary" else None
    i = np.repeat(np.arange(len(y)), options.pop("sample_weight", np.ones(len(y))).astype(int))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        got = definitions.value(entry["id"], y[i], p[i], lens=lens, **rows_of(options, i))
    if isinstance(got, dict):
        got = got.get(entry["field"], number(entry["value"]))
    near = {"rtol": max(entry.get("rtol", 1e-7), definition.rtol), "atol": max(entry.get("atol", 0), definition.atol)}
    assert_close(got if entry.get("index") is None else got[entry["index"]], {**entry, **near})


# -- detections --------------------------------------------------------------------------------------

DETECTION = [id for id, d in DEFINITIONS.items() if d.sees == "detections"]


def detections(n, seed, decimals=2):
    """Arrays of matched detections; class "d" has objects and no detection, "b" no missed object."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), decimals)
    correct = (rng.random(n) < score**1.3).astype(int)
    place = np.column_stack([rng.uniform(0, 60, (n, 2)), rng.uniform(1, 40, (n, 2))])
    return {
        "correct": correct, "score": score, "iou": np.where(correct, np.round(rng.uniform(0.5, 1, n), 2), 0.0),
        "category": rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1]), "missed": {"a": 3, "c": 2, "d": 1}, "box": place,
    }  # fmt: skip


def at_the_ends(n, seed):
    data = detections(n, seed)
    data["score"][:6] = 0.0, 1.0, 1.0, 0.0, 0.5, 0.1
    return data


DETECTION_DATA = {
    "random": lambda: detections(40, 0, 6), "ties": lambda: detections(60, 1, 1), "few": lambda: detections(3, 2),
    "ends": lambda: at_the_ends(30, 3), "hundredths": lambda: detections(50, 4),
}  # fmt: skip

DETECTION_VARIANTS = {
    "average_calibration_error": [{"n_bins": 7, "closed": "right"}, {"empty": "zero"}, {"average": "macro"},
                                  {"average": "weighted"}],
    "d_ece": [{"n_bins": 10, "min_count": 3, "closed": "right"}, {"min_count": 1},
              {"n_bins": 5, "min_count": 4, "average": "macro"},
              {"n_bins": 5, "min_count": 4, "average": "weighted"},
              {"n_bins": 4, "min_count": 2, "denominator": "kept", "features": "location"},
              {"n_bins": [5, 3, 2], "min_count": 2, "features": "shape"},
              {"n_bins": 3, "min_count": 1, "features": ["cy"]}],
    "laece": [{"n_bins": 8, "closed": "right"}, {"classes": "saod"}, {"classes": "kuzucu"}],
    "laace": [{"classes": "saod"}, {"classes": "kuzucu"}],
    "l1cbod": [{"link": "identity", "bandwidth": 0.1}, {"bandwidth": "loo-authors"}, {"average": "macro"},
               {"average": "weighted", "bandwidth": 0.01, "link": "identity"}],
    "egce": [{"n_bins": 6, "closed": "left"}, {"confidence_threshold": 0.4, "reduction": "sum"}, {"average": "macro"}],
    "oce": [{"iou_thresholds": [0.6, 0.8, 0.9]}, {"average": "macro"}],
    "qgc": [{"reduction": "sum"}, {"average": "macro"}, {"average": "weighted"}],
    "sgc": [{"reduction": "sum"}, {"average": "macro"}, {"average": "weighted"}],
}  # fmt: skip


def check_detections(id, data, w=None, /, **options):
    """The metric on matched detections and its definition on their arrays."""
    n = DEFINITIONS[id].most // (1 if w is None else 2)
    data = {name: x[:n] if isinstance(x, np.ndarray) else x for name, x in data.items()}
    w = None if w is None else w[:n]
    matched = cal.matched_detections(
        data["correct"], data["score"], iou=data["iou"], category=data["category"], n_missed=data["missed"],
        box=data["box"], image_size=(100, 80), sample_weight=w,
    )  # fmt: skip
    definition = DEFINITIONS[id]
    given = {name: data[name] for name in ("category", "iou", "missed") if name in definition.options}
    features = options.get("features", ())
    x, y, width, height = data["box"].T
    place = {"cx": (x + width / 2) / 100, "cy": (y + height / 2) / 80, "w": width / 100, "h": height / 80}
    names = {"location": ("cx", "cy"), "shape": ("w", "h")}.get(str(features), features)
    if names:
        given["place"] = [place[name] for name in names]
    rows = np.arange(len(data["score"])) if w is None or "w" in definition.options else np.repeat(np.arange(len(w)), w)
    if w is not None and "w" in definition.options:
        given["w"] = w.astype(float)
    given = {k: v[rows] if isinstance(v, np.ndarray) and len(v) == len(data["score"]) else v for k, v in given.items()}
    asked = {name: v for name, v in options.items() if name != "features"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = cal.compute(id, matched, **options)
        want = definition.function(data["correct"][rows], data["score"][rows], **given, **asked)
    agree(got, want, definition)


@each_of_id([(id, data) for id in DETECTION for data in DETECTION_DATA])
def test_a_detection_metric_is_its_definition(id, data):
    found = DETECTION_DATA[data]()
    check_detections(id, found)
    check_detections(id, found, 1 + np.arange(len(found["score"])) % 3)


@each_of_id([(id, options) for id, some in DETECTION_VARIANTS.items() for options in some])
def test_options_of_detection_metrics_mean_what_the_definition_says(id, options):
    for data in ("ties", "hundredths"):
        found = DETECTION_DATA[data]()
        check_detections(id, found, **options)
        check_detections(id, found, 1 + np.arange(len(found["score"])) % 3, **options)


def test_every_option_of_a_detection_definition_is_tried():
    inputs = {"category", "iou", "missed", "place", "w"}
    for id in DETECTION:
        assert set(DEFINITIONS[id].options) - inputs <= {k for v in DETECTION_VARIANTS[id] for k in v}, id
