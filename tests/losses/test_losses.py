"""Losses equal their metrics, and their gradients equal finite differences."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import calibrary as cal

torch = pytest.importorskip("torch")

from calibrary import losses  # noqa: E402
from calibrary.losses.declare import ROWS  # noqa: E402
from loss_cases import CASES, GROUPS, SOFT, N, binary, cut_short, multi, named  # noqa: E402
from paths import ROOT  # noqa: E402

#: Those whose metric is integrated numerically, and how well the two agree.
LOOSE = {"skde": 1e-6, "smece": 2e-9, "lsece": 2e-9}
#: Losses of detections have other arguments; those of emerging metrics are held to their definitions below.
DETECTION = ("l1cbod", "laace", "qgc", "sgc")
EMERGING = ("atb", "bounded_brier", "bounded_log", "multiaccuracy_error", "calibration_e_value")


every_case = pytest.mark.parametrize(("metric", "options"), CASES, ids=named)
every_loss = pytest.mark.parametrize(
    ("metric", "options"),
    [next(case for case in CASES if case[0] == metric) for metric in dict(CASES)],
    ids=named,
)


def outcome(function, *arguments, **options):
    try:
        value = function(*arguments, **options)
    except (ValueError, TypeError):
        return None
    return float(value) if np.ndim(value) == 0 else None  # one number per class is no loss


def test_every_loss_is_tried():
    assert set(losses.LOSSES) == {metric for metric, _ in CASES} | set(DETECTION) | set(EMERGING)


@every_case
@pytest.mark.parametrize("lens", ["auto", "binary", "top-label", "class-wise", "full"])
def test_a_loss_equals_its_metric_through_every_lens_and_with_weights(metric, options, lens):
    options = {"lens": lens, **options}
    if options["lens"] != lens:
        pytest.skip("does not apply: the option needs another lens")
    seen = 0
    for y, p in (binary(), multi()):
        for weights in (None, 1.0 + np.arange(N) % 3):
            given = {**options, "sample_weight": weights}
            want = outcome(cal.catalogue[metric], y, p, **given)
            got = outcome(losses.loss_of(metric), torch.tensor(y), torch.tensor(p), **given)
            if got is None:
                assert want is None or lens not in losses.loss_of(metric).lenses, "only the loss refuses"
            else:
                assert got == pytest.approx(want, rel=1e-9, abs=LOOSE.get(metric, 1e-12))
                seen += 1
    assert seen or lens not in losses.loss_of(metric).lenses


@pytest.mark.parametrize(
    "metric", ["bs", "rbs", "nll", "mae", "pwe", "l1eps", "hinge", "huber", "silf", "asymmetric_ls"]
)
@pytest.mark.parametrize("dimensions", [1, 2])
def test_soft_targets_take_the_place_of_labels(metric, dimensions):
    y, p = binary() if dimensions == 1 else multi()
    got = losses.loss_of(metric)(y, torch.tensor(p), soft_target=SOFT[dimensions])
    assert float(got) == pytest.approx(cal.compute(metric, y, p, soft_target=SOFT[dimensions]), rel=1e-12)


@pytest.mark.parametrize("metric", ["rps", "sarps"])
def test_soft_targets_of_ordered_classes(metric):
    y, p = multi()
    got = losses.loss_of(metric)(y, torch.tensor(p), soft_target=SOFT[2])
    assert float(got) == pytest.approx(cal.compute(metric, y, p, soft_target=SOFT[2]), rel=1e-12)


def test_options_that_are_tensors():
    y, c = binary()
    ym, p = multi()
    W = np.exp(-np.abs(np.subtract.outer(np.arange(N), np.arange(N))))
    for pair in (W, np.diag(W)):
        assert float(losses.generalized_squared_error(y, torch.tensor(c), W=torch.tensor(pair))) == pytest.approx(
            cal.compute("general_ls", y, c, W=pair)
        )
    for alpha, labels, probabilities in ((0.3, y, c), ([0.2, 1.0, 3.0], ym, p)):
        got = losses.focal_loss(labels, torch.tensor(probabilities), alpha=alpha)
        assert float(got) == pytest.approx(cal.compute("fl", labels, probabilities, alpha=alpha))
    half = losses.focal_loss(y, torch.tensor(c), gamma=lambda c: 1.0 + c)
    assert float(half) == pytest.approx(cal.compute("fl", y, c, gamma=lambda c: 1.0 + c))
    M = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    for metric in ("skce_b", "skce_uq", "skce_ul"):
        got = losses.loss_of(metric)(ym, torch.tensor(p), bandwidth=0.4, matrix=M)
        assert float(got) == pytest.approx(cal.compute(metric, ym, p, bandwidth=0.4, matrix=M))
        got = losses.loss_of(metric)(y, torch.tensor(c), bandwidth=0.4, matrix=M[:2, :2])
        assert float(got) == pytest.approx(cal.compute(metric, y, c, bandwidth=0.4, matrix=M[:2, :2]))


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("l1cbod", {"bandwidth": 0.1}),
        ("l1cbod", {"bandwidth": 0.02, "link": "identity"}),
        ("laace", {}),
        ("qgc", {"n_missed": 3}),
        ("qgc", {"n_missed": 2, "reduction": "sum"}),
        ("sgc", {"n_missed": 3}),
        ("sgc", {"reduction": "sum"}),
    ],
    ids=named,
)
def test_losses_of_detections_equal_their_metrics(metric, options):
    correct, score = binary()
    iou = np.linspace(0.5, 1.0, N)
    score[:4] = [0.0, 0.3, 1.0, 0.3]  # lone scores at the ends, and a pair of equal ones
    given = {"iou": iou} if metric == "laace" or options.get("link") else {}
    for weights in (None, 1.0 + np.arange(N) % 3):
        z = torch.tensor(score, requires_grad=True)
        got = losses.loss_of(metric)(correct, z, sample_weight=weights, **given, **options)
        want = cal.compute(metric, correct, score, iou=iou, sample_weight=weights, **options)
        assert got.item() == pytest.approx(want, rel=1e-9)
        got.backward()
        assert torch.isfinite(z.grad).all()
    inside = torch.tensor(score[4:12], requires_grad=True)
    labels = torch.tensor(correct[4:12])
    few = {"iou": iou[4:12]} if given else {}
    assert torch.autograd.gradcheck(lambda c: losses.loss_of(metric)(labels, c, **few, **options), (inside,), atol=1e-5)


def test_bounded_scores_equal_the_integral_of_the_decision_cost():
    y, c = binary()
    for low, high in ((0.1, 0.6), (0.05, 0.95)):
        t = np.linspace(low, high, 200_001)
        missed = np.sort(c[y == 1]).searchsorted(t, side="right") / N
        alarmed = ((y == 0).sum() - np.sort(c[y == 0]).searchsorted(t, side="right")) / N
        cost = (1 - t) * missed + t * alarmed
        brier = losses.bounded_brier(y, torch.tensor(c), low=low, high=high)
        log = losses.bounded_log(y, torch.tensor(c), low=low, high=high)
        assert float(brier) == pytest.approx(2 * np.trapezoid(cost, t), abs=1e-5)
        assert float(log) == pytest.approx(np.trapezoid(cost / (t * (1 - t)), t), abs=1e-5)
    assert float(losses.bounded_brier(y, torch.tensor(c))) == pytest.approx(cal.brier_score(y, c))


def test_averaged_two_bin_error_equals_its_integral():
    y, c = binary()
    w = 1.0 + np.arange(N) % 3
    t = np.linspace(0, 1, 400_001)
    for weight in (np.ones(N), w):
        order = np.argsort(c)
        walk = np.concatenate([[0.0], np.cumsum((weight * (y - c))[order])]) / weight.sum()
        a = walk[np.searchsorted(c[order], t, side="left")]
        for norm in (1, 2):
            want = np.trapezoid(np.abs(a) ** norm + np.abs(walk[-1] - a) ** norm, t)
            got = losses.averaged_two_bin_error(y, torch.tensor(c), norm=norm, sample_weight=weight)
            assert float(got) == pytest.approx(want, abs=1e-6)
    root = losses.averaged_two_bin_error(y, torch.tensor(c), root=True)
    assert float(root) ** 2 == pytest.approx(float(losses.averaged_two_bin_error(y, torch.tensor(c))))
    debiased = losses.averaged_two_bin_error(y, torch.tensor(c), debias=True)
    bias = ((y - c) ** 2).sum() / N**2
    assert float(debiased) == pytest.approx(float(losses.averaged_two_bin_error(y, torch.tensor(c))) - bias)


def test_the_e_value_is_the_mean_likelihood_ratio_of_its_alternatives():
    y, c = binary()
    w = 1.0 + np.arange(N) % 3
    for weight in (np.ones(N), w):
        logs = []
        for a in (0, 0.25, -0.25, 0.5, -0.5, 1, -1):
            for b in (0.5, 0.7, 0.85, 1, 1.2, 1.5, 2):
                for d in (0.5, 0.7, 0.85, 1, 1.2, 1.5, 2):
                    if (a, b, d) != (0, 1, 1):
                        q = 1 / (1 + np.exp(-(a + b * np.log(c) - d * np.log1p(-c))))
                        logs.append(weight @ np.where(y == 1, np.log(q / c), np.log((1 - q) / (1 - c))))
        assert len(logs) == 342
        want = np.log(np.mean(np.exp(logs)))
        assert float(losses.calibration_e_value(y, torch.tensor(c), sample_weight=weight)) == pytest.approx(want)
        got = losses.calibration_e_value(y, torch.tensor(c), sample_weight=weight, log=False)
        assert float(got) == pytest.approx(np.exp(want))
    by_class = [
        float(losses.calibration_e_value(1 - y, torch.tensor(1 - c))),
        float(losses.calibration_e_value(y, torch.tensor(c))),
    ]
    both = losses.calibration_e_value(y, torch.tensor(c), lens="class-wise")
    assert float(both) == pytest.approx(np.log(np.mean(np.exp(by_class))))


def test_multiaccuracy_is_the_largest_bias_of_any_segment():
    y, c = binary()
    members = np.column_stack([GROUPS == 1, c > 0.5, np.arange(N) % 2]).astype(float)
    w = 1.0 + np.arange(N) % 3
    r = w * (y - c)
    want = max(abs(r.sum()), *np.abs(r @ members)) / w.sum()
    assert float(losses.multiaccuracy_error(y, torch.tensor(c), members=members, sample_weight=w)) == pytest.approx(
        want
    )


@pytest.mark.parametrize("metric", EMERGING)
def test_losses_of_emerging_metrics_equal_them(metric):
    threshold = {"low": 0.1, "high": 0.7}
    segments = {"by": {"part": GROUPS.astype(str)}, "min_rows": 1}
    one_hot = {"members": np.eye(4)[GROUPS]}
    same, of_metric, of_loss = {
        "atb": ({"root": True}, {}, {}),
        "bounded_brier": (threshold, {}, {}),
        "bounded_log": (threshold, {}, {}),
        "multiaccuracy_error": ({}, segments, one_hot),
        "calibration_e_value": ({"log": True}, {}, {}),
    }[metric]
    y, c = binary()
    for weights in (None, 1.0 + np.arange(N) % 3):
        got = losses.loss_of(metric)(y, torch.tensor(c), sample_weight=weights, **same, **of_loss)
        assert float(got) == pytest.approx(cal.compute(metric, y, c, sample_weight=weights, **same, **of_metric))


# -- gradients --------------------------------------------------------------------------------------


def from_logits(_metric, y, /, **options):
    def value(z):
        p = torch.sigmoid(z) if z.ndim == 1 else torch.softmax(z, dim=1)
        return losses.loss_of(_metric)(y, p, **options)

    return value


@every_case
def test_gradients_equal_finite_differences(metric, options):
    rng = np.random.default_rng(2)
    for shape in ((9,), (9, 3)):
        logits = torch.tensor(rng.normal(size=shape), requires_grad=True)
        y = torch.tensor(rng.integers(0, 2 if len(shape) == 1 else 3, 9))
        given = cut_short(options, 9)
        if len(shape) == 2 and metric == "general_ls":
            continue
        assert torch.autograd.gradcheck(from_logits(metric, y, **given), (logits,), eps=1e-6, atol=2e-5)


@pytest.mark.parametrize("metric", EMERGING)
def test_gradients_of_emerging_losses_equal_finite_differences(metric):
    bounded, members = {"low": 0.2, "high": 0.8}, {"members": np.eye(4)[GROUPS[:9]]}
    options = bounded if "bounded" in metric else members if metric == "multiaccuracy_error" else {}
    rng = np.random.default_rng(2)
    for shape in ((9,), (9, 3)):
        logits = torch.tensor(rng.normal(size=shape), requires_grad=True)
        y = torch.tensor(rng.integers(0, 2 if len(shape) == 1 else 3, 9))
        assert torch.autograd.gradcheck(from_logits(metric, y, **options), (logits,), atol=1e-5)


@pytest.mark.parametrize("metric", ["mmce", "skce_uq", "sbece", "smece", "msce", "bkde", "rice"])
def test_gradients_class_by_class(metric):
    options = {"skce_uq": {"bandwidth": 0.3}, "bkde": {"bandwidth": 0.1}}.get(metric, {})
    rng = np.random.default_rng(4)
    logits = torch.tensor(rng.normal(size=(8, 3)), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, 8))
    assert torch.autograd.gradcheck(from_logits(metric, y, lens="class-wise", **options), (logits,), atol=1e-5)


@every_loss
def test_saturated_predictions_give_finite_gradients_where_the_loss_is_finite(metric, options):
    if metric in ("dss", "pws"):
        pytest.skip("does not apply: infinite, or undefined, for predictions that are all certain")
    p = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5, 0.5], dtype=torch.float64, requires_grad=True)
    value = losses.loss_of(metric)(torch.tensor([0, 1, 0, 1, 0, 1]), p, **cut_short(options, 6))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(p.grad).all()


def test_a_gradient_too_large_for_float16_is_the_largest_it_can_hold():
    p = torch.tensor([2e-4, 0.5], dtype=torch.float16, requires_grad=True)  # d/dp of log(p (1 - p)) + ... passes 65504
    losses.dawid_sebastiani_score(torch.tensor([1, 0]), p).backward()
    assert torch.isfinite(p.grad).all()
    assert float(p.grad[0]) == -torch.finfo(torch.float16).max


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_is_finite_and_near(metric, options, dtype):
    for y, p in (binary(), multi()):
        if p.ndim == 2 and metric == "general_ls":
            continue
        half = torch.tensor(p).to(dtype).requires_grad_()
        value = losses.loss_of(metric)(torch.tensor(y), half, **options)
        value.backward()
        assert value.dtype == torch.float32
        assert half.grad.dtype == dtype
        assert torch.isfinite(half.grad).all()
        exact = losses.loss_of(metric)(torch.tensor(y), half.detach().double(), **options)
        assert value.item() == pytest.approx(exact.item(), rel=2e-3, abs=1e-4)


@every_case
@pytest.mark.parametrize("lens", ["auto", "top-label", "class-wise"])
def test_single_precision_stays_single_and_close(metric, options, lens):
    function = losses.loss_of(metric)
    options = {"lens": lens, **options}
    for y, p in (binary(), multi()):
        if options["lens"] not in ("auto", *function.lenses) or (p.ndim == 2 and metric == "general_ls"):
            continue
        found = []
        for dtype in (torch.float32, torch.float64):
            q = torch.tensor(p, dtype=torch.float32).to(dtype).requires_grad_()
            value = function(torch.tensor(y), q, **options)
            value.backward()
            assert value.dtype == q.grad.dtype == dtype
            found.append((value.detach().double(), q.grad.double()))
        torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)


@every_loss
def test_autocast_changes_nothing(metric, options):
    y, p = binary()
    c = torch.tensor(p).float()
    plain = losses.loss_of(metric)(y, c, **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = losses.loss_of(metric)(y, c, **options)
    assert within.dtype == plain.dtype
    assert within.item() == plain.item()


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("bs", {}),
        ("mmce", {}),
        ("sbece", {"lens": "class-wise"}),
        ("smece", {"sigma": 0.1}),
        ("rice", {}),
        ("skce_uq", {"bandwidth": 0.3}),
        ("dkde", {"bandwidth": 0.1}),
        ("atb", {}),
    ],
    ids=named,
)
def test_a_loss_is_one_graph_for_the_compiler(metric, options):
    y, p = multi(16)
    labels = torch.tensor(y)
    torch._dynamo.reset()

    def value(p):
        return losses.loss_of(metric)(labels, p, **options)

    compiled = torch.compile(value, backend="aot_eager", fullgraph=True)
    gradients = []
    for function in (value, compiled):
        q = torch.tensor(p, requires_grad=True)
        found = function(q)
        found.backward()
        gradients.append(q.grad)
        assert found.item() == pytest.approx(value(torch.tensor(p)).item(), rel=1e-12)
    torch.testing.assert_close(*gradients)


def test_compiled_code_gives_the_same_number():
    y, p = multi(16)
    criterion = losses.MaximumMeanCalibrationError()
    try:
        value = torch.compile(criterion)(torch.tensor(p), torch.tensor(y))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        pytest.skip(f"this build lacks: a C++ compiler for torch.compile ({error.__class__.__name__})")
    assert value.item() == pytest.approx(cal.compute("mmce", y, p), rel=1e-12)


def test_equal_confidences_are_not_pushed_apart():
    p = torch.full((6,), 0.7, dtype=torch.float64)
    p[:2] = 0.2
    y = torch.tensor([0, 1, 1, 1, 0, 1])
    gradients = []
    for order in (torch.arange(6), torch.tensor([1, 0, 5, 4, 3, 2])):
        q = p[order].clone().requires_grad_()
        losses.maximum_mean_calibration_error(y[order], q).backward()
        gradients.append(q.grad[torch.argsort(order)])
    torch.testing.assert_close(*gradients)
    assert gradients[0][2] == pytest.approx(gradients[0][3].item())  # same label, same confidence


def test_weight_zero_is_no_row_and_weight_two_is_the_row_twice():
    y, p = multi(12)
    weight = np.array([0.0, 1.0, 2.0] * 4)
    again = np.repeat(np.arange(12), weight.astype(int))
    for metric, options in CASES:
        given = {k: v for k, v in options.items() if np.ndim(v) == 0}
        if metric in ("skce_ul", "general_ls", "pce"):
            continue
        weighted = losses.loss_of(metric)(y, torch.tensor(p), sample_weight=weight, **given)
        repeated = losses.loss_of(metric)(y[again], torch.tensor(p[again]), **given)
        assert weighted.item() == pytest.approx(repeated.item(), rel=1e-8, abs=1e-10), metric


def test_a_calibration_loss_can_be_minimised():
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(0, 2, 300))
    y = torch.tensor((rng.random(300) < 1 / (1 + np.exp(-0.4 * z.numpy()))).astype(int))
    for criterion in (losses.maximum_mean_calibration_error, losses.averaged_two_bin_error):
        slope = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([slope], lr=0.05)
        before = criterion(y, torch.sigmoid(slope * z)).item()
        for _ in range(60):
            optimizer.zero_grad()
            loss = criterion(y, torch.sigmoid(slope * z))
            loss.backward()
            optimizer.step()
        assert loss.item() < 0.6 * before
        assert 0.2 < slope.item() < 0.7


# -- reductions and modules -------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["bs", "nll", "fl", "mae", "rps", "pss"])
def test_rows_are_reduced_as_asked(metric):
    y, p = multi()
    w = 1.0 + np.arange(N) % 3
    function = losses.loss_of(metric)
    rows = function(y, torch.tensor(p), reduction="none")
    assert rows.shape == (N,)
    np.testing.assert_allclose(rows.numpy(), cal.compute(metric, y, p, reduction="none"), rtol=1e-12)
    total = function(y, torch.tensor(p), reduction="sum", sample_weight=w)
    assert total.item() == pytest.approx(float(rows.numpy() @ w))
    by_class = function(y, torch.tensor(p), reduction="none", lens="class-wise")
    np.testing.assert_allclose(by_class.numpy(), cal.compute(metric, y, p, reduction="none", lens="class-wise"))


def test_the_sum_of_a_loss_of_the_batch_is_its_value_for_every_row():
    y, p = multi()
    w = 1.0 + np.arange(N) % 3
    value = losses.maximum_mean_calibration_error(y, torch.tensor(p), sample_weight=w)
    total = losses.maximum_mean_calibration_error(y, torch.tensor(p), sample_weight=w, reduction="sum")
    assert total.item() == pytest.approx(value.item() * w.sum())
    with pytest.raises(ValueError, match="one number for a whole batch"):
        losses.maximum_mean_calibration_error(y, torch.tensor(p), reduction="none")


def test_every_loss_has_a_module_that_is_called_as_a_criterion():
    y, p = multi()
    for metric, function in losses.LOSSES.items():
        name = "".join(word.capitalize() for word in function.__name__.split("_"))
        criterion = getattr(losses, name)
        assert issubclass(criterion, torch.nn.Module)
        assert criterion.loss is function
        if metric in DETECTION:
            continue
        options = dict(CASES).get(metric, {"members": np.eye(4)[GROUPS]} if metric == "multiaccuracy_error" else {})
        if metric == "general_ls":
            continue
        made = criterion(**options)
        assert made(torch.tensor(p), torch.tensor(y)).item() == function(y, torch.tensor(p), **options).item()
    kept = losses.BrierScore(scale="sum", lens="class-wise")
    assert repr(kept) == "BrierScore(scale='sum', lens='class-wise')"
    assert repr(pickle.loads(pickle.dumps(kept))) == repr(kept) == repr(copy.deepcopy(kept))


def test_a_module_takes_logits_and_weights():
    y, p = multi()
    z = torch.tensor(np.log(p))
    w = torch.tensor(1.0 + np.arange(N) % 3)
    got = losses.BrierScore(from_logits=True)(z, torch.tensor(y), sample_weight=w)
    assert got.item() == pytest.approx(cal.brier_score(y, p, sample_weight=w.numpy()))
    assert losses.BrierScore(from_logits=True)(z[:, 0], y % 2).item() == pytest.approx(
        cal.brier_score(y % 2, 1 / (1 + 1 / p[:, 0]))
    )


def test_an_option_that_a_loss_does_not_have_is_refused():
    sentence = "maximum_mean_calibration_error has no option 'bandwith': did you mean 'bandwidth'"
    with pytest.raises(TypeError, match=sentence):
        losses.MaximumMeanCalibrationError(bandwith=0.2)
    with pytest.raises(TypeError, match=sentence):
        losses.maximum_mean_calibration_error([0, 1], P2, bandwith=0.2)


def test_old_names_of_options_work_and_warn():
    y, p = multi()
    with pytest.warns(DeprecationWarning, match="norm=2"):
        old = losses.dirichlet_kernel_calibration_error(y, torch.tensor(p), bandwidth=0.1, p=2)
    assert old == losses.dirichlet_kernel_calibration_error(y, torch.tensor(p), bandwidth=0.1, norm=2)
    with pytest.warns(DeprecationWarning, match="definition='review'"):
        losses.DualFocalLoss(variant="top2")


def test_a_metric_without_a_loss_says_so():
    with pytest.raises(cal.UnknownMetricError, match="'ece' has no loss"):
        losses.loss_of("ece")


# -- bad input --------------------------------------------------------------------------------------


P2 = torch.tensor([0.2, 0.8])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0.2, 0.8]), "floating-point tensor"),
        ((P2, torch.tensor([0, 1])), "arguments look swapped"),
        (([0, 1, 1], P2), "one label per row"),
        (([[0, 1], [1, 0]], P2), "one class per row"),
        (([0, 1], torch.tensor([[0.2], [0.8]])), "y_prob has one class"),
        (([0, 1], torch.zeros(2, 2, 2)), "K at least 2"),
        (([], torch.zeros(0)), "empty"),
        (([0, 2], P2), r"y_true holds 2 and y_prob has 2 classes: pass classes 0..1"),
        (([-1, 0], P2), "y_true holds -1"),
        (([0.3, 1.0], P2), "y_true holds 0.3: .*soft_target"),
        (([0, 1], torch.tensor([-2.0, 3.0])), "y_prob holds -2: pass probabilities"),
        (([0, 1], torch.tensor([0.2, 1.5])), "y_prob holds 1.5: pass probabilities"),
        ((torch.tensor([0.0, 1.0], requires_grad=True), P2), r"y_true requires a gradient, .* y_true.detach\(\)"),
        ((torch.empty(2, dtype=torch.long, device="meta"), P2), "y_true is on meta and y_prob on cpu: move one"),
        ((["a", "b"], P2), "cannot be read as a tensor"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(cal.RefusedError, match=sentence):
        losses.brier_score(*arguments)


@pytest.mark.parametrize(
    ("metric", "options", "sentence"),
    [
        ("bs", {"sample_weight": [1.0]}, "sample_weight has shape"),
        ("bs", {"sample_weight": [1.0, -1.0, 2.0]}, "sample_weight holds -1"),
        ("bs", {"sample_weight": [0.0, 0.0, 0.0]}, "nor all zero"),
        ("bs", {"lens": "pairwise"}, "lens='pairwise' is not known"),
        ("bs", {"reduction": "max"}, "reduction='max' is not known"),
        ("bs", {"soft_target": [0.1, 0.2]}, "soft_target has shape"),
        ("bs", {"soft_target": [0.1, 0.2, 1.7]}, "soft_target holds 1.7"),
        ("bs", {"soft_target": [0.1, 0.2, 0.3], "lens": "top-label"}, "soft_target replaces the labels"),
        ("dkde", {"bandwidth": 0.0}, "bandwidth=0.0 must be a positive number"),
        ("dkde", {"bandwidth": "cv"}, "compute it once"),
        ("bkde", {"bandwidth": 0.1, "norm": 1, "debias": True}, "debias=True needs norm=2"),
        ("bkde", {"bandwidth": 0.1, "sample_weight": [0.5, 1.0, 2.0]}, "between 0 and 1"),
        ("skce_uq", {"bandwidth": 0.1, "sample_weight": [0.2, 0.2, 0.2]}, "must sum to more than 1"),
        ("skce_uq", {"bandwidth": 0.1, "matrix": np.eye(3)}, "matrix has shape"),
        ("pce", {"groups": [0, 1]}, "groups has shape"),
        ("pce", {"groups": [0, 1, -1]}, "groups holds -1"),
        ("dece", {"accuracy": "soft"}, "use lens='top-label'"),
        ("dece", {"eps": -1.0}, "eps=-1.0 must be a finite number that is not negative"),
        ("dece", {"tau": 0.0}, "tau=0.0 must be a finite number above 0"),
        ("sbece", {"decay_factor": 0.5}, "decay_factor=0.5 must be a finite number above 1"),
        ("rice", {"width": 0.0}, "width=0.0 must be a finite number above 0 and at most 1"),
        ("sice", {"eps": 3.0}, "eps=3.0 must be a finite number above 0 and at most 2"),
        ("silf", {"beta": 1.5}, "beta=1.5 must be a finite number above 0 and at most 1"),
        ("huber", {"eps": np.inf}, "eps=inf must be a finite number above 0"),
        ("l1eps", {"eps": "small"}, "eps='small' must be a finite number"),
        ("atb", {"norm": 1, "debias": True}, "debias=True is for norm=2"),
        ("bounded_log", {"low": 0.6, "high": 0.5}, "0 <= low < high <= 1"),
        ("multiaccuracy_error", {"members": [0, 1, 1]}, "members has shape"),
        ("fl", {"gamma": -1.0}, "gamma=-1.0"),
        ("fl", {"gamma": [1.0, 2.0]}, r"gamma has shape \(2,\): pass one exponent for each of the 3 rows"),
        ("fl", {"alpha": [1.0, 2.0, 3.0]}, "alpha="),
        ("pss", {"alpha": 0.5}, "alpha=0.5"),
        ("general_ls", {"W": np.ones((2, 2))}, "W has shape"),
        ("general_ls", {"W": np.ones(3), "sample_weight": [1.0, 1.0, 1.0]}, "pass one of them"),
        ("l1cbod", {"bandwidth": 0.1, "link": "identity"}, "iou is missing"),
        ("laace", {"iou": [0.5]}, r"iou has shape \(1,\): pass one overlap for each of the 3 rows"),
        ("qgc", {"n_missed": -1}, "n_missed=-1"),
    ],
)
def test_bad_options_are_refused_by_name(metric, options, sentence):
    y, p = torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.8, 0.6])
    with pytest.raises(cal.RefusedError, match=sentence):
        losses.loss_of(metric)(y, p, **options)


def test_a_lens_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="lens='binary' needs one probability"):
        losses.soft_f1_score([0, 1, 1], torch.full((3, 4), 0.25), lens="binary")


def test_batches_that_are_too_small_or_of_one_class_say_so():
    y, p = torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.8, 0.6])
    with pytest.raises(ValueError, match="too small"):
        losses.beta_kernel_calibration_error(y[:2], p[:2], bandwidth=0.1)
    with pytest.raises(ValueError, match="at least two"):
        losses.squared_kernel_calibration_error_uq(y[:1], p[:1], bandwidth=0.1)
    with pytest.raises(ValueError, match="one class only"):
        losses.expected_observed_ratio([0, 0, 0], p)


@every_loss
def test_labels_of_one_class_give_a_finite_loss(metric, options):
    """Half of all small batches of a rare class have none of it: nothing may turn into nan there."""
    if metric == "eo":
        pytest.skip("does not apply: infinite, and says so")
    p = torch.tensor([0.2, 0.8, 0.6, 0.5, 0.3, 0.9], dtype=torch.float64, requires_grad=True)
    value = losses.loss_of(metric)(torch.zeros(6, dtype=torch.long), p, **cut_short(options, 6))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(p.grad).all()


def test_the_rooms_lenses_are_those_of_the_metrics():
    from calibrary.data.lens import ALL_LENSES

    assert set(ROWS) <= set(ALL_LENSES)


# -- choosing a weight ------------------------------------------------------------------------------


def overconfident(weight, seed):
    """A model whose log odds the loss shrinks: right at weight 0.3, too timid beyond, with noise from the seed."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1, 4000)
    y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    noise = np.random.default_rng(seed).normal(0, 0.02)
    return y, 1 / (1 + np.exp(-z * (2.0 + noise) / (1.0 + weight / 0.3)))


def test_the_weight_of_the_best_held_out_score_is_suggested():
    chosen = losses.suggest_weight(overconfident)
    assert chosen.weight == 0.3
    assert chosen.score == "nll"
    assert [row["weight"] for row in chosen.table] == [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    assert chosen.table[0]["gain"] == 0.0
    mean = np.mean([cal.compute("nll", *overconfident(0.3, seed)) for seed in range(3)])
    assert chosen.table[4]["score"] == pytest.approx(mean)
    assert "improves the held-out nll" in chosen.words


def test_no_weight_is_suggested_where_the_loss_does_not_help():
    def worse(weight, seed):
        return overconfident(0.3 + weight, seed)

    chosen = losses.suggest_weight(worse, [0.1, 1.0], score="bs")
    assert chosen.weight == 0.0
    assert "no weight has a better held-out bs" in chosen.words

    def chance(weight, seed):  # much better once, a little worse twice
        return overconfident(0.1 if weight == 0.0 else (0.3, 0.09, 0.09)[seed], 0)

    chosen = losses.suggest_weight(chance, [0.1])
    assert chosen.weight == 0.0
    assert "no more than its standard error" in chosen.words
    assert chosen.table[1]["gain"] > 0.0


def test_scores_for_which_more_is_better_are_turned_round():
    assert losses.suggest_weight(overconfident, score="pss").weight == 0.3


def test_a_single_seed_says_that_it_cannot_tell_chance():
    assert "one seed" in losses.suggest_weight(overconfident, seeds=[0]).words


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"score": "ece"}, "score='ece' is not a proper score"),
        ({"weights": [-1.0]}, "none of them negative"),
        ({"seeds": []}, "seeds is empty"),
    ],
)
def test_a_weight_cannot_be_chosen_by_anything(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        losses.suggest_weight(overconfident, **options)


# -- what has no loss -------------------------------------------------------------------------------


def test_the_page_on_losses_decides_about_every_metric():
    page = ROOT / "docs" / "evidence" / "losses.md"
    decided, _, without = (
        page.read_text().partition("## Every metric: is it differentiable?")[2].partition("Without a loss:")
    )
    with_loss, without_loss = (set(re.findall(r"`([a-z0-9_]+)`", text)) for text in (decided, _rows_of(without)))
    assert set(losses.LOSSES) <= with_loss
    missing = [
        entry.id
        for entry in cal.catalogue.values()
        if entry.status != "emerging" and entry.id not in with_loss | without_loss
    ]
    assert not missing, f"docs/evidence/losses.md does not say whether these are differentiable: {missing}"
    assert not without_loss & set(losses.LOSSES)


def _rows_of(table):
    """The first column of a table: the metrics; the second gives reasons and names others."""
    return "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))


def test_the_mean_of_the_stratified_brier_score_is_a_weighted_brier_score():
    y, p = multi()
    weight = (1.0 / np.bincount(y))[y]
    got = losses.brier_score(y, torch.tensor(p), sample_weight=weight)
    assert got.item() == pytest.approx(cal.stratified_brier_score(y, p).mean())


def test_the_distance_of_distributions_is_a_mean_absolute_error_with_soft_targets():
    y, p = multi()
    got = losses.mean_absolute_error(y, torch.tensor(p), soft_target=SOFT[2]) * 3 / 2
    assert got.item() == pytest.approx(np.mean(0.5 * np.abs(p - SOFT[2]).sum(axis=1)))
