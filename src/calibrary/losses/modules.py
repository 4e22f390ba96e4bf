"""Every loss as a module, called as PyTorch calls a criterion: ``criterion(y_prob, y_true)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from calibrary.losses import (
    bias,
    bins,
    cumulative,
    curves,
    detection,
    embedding,
    errors,
    evidence,
    neighbors,
    pairs,
    residuals,
    scores,
)
from calibrary.losses.declare import with_current_names


class LossModule(nn.Module):  # type: ignore[misc]  # PyTorch is not type-checked
    """A loss with its options, for use as a PyTorch criterion.

    Arguments are in PyTorch's order, predictions first. Options are those of the function of the same name.

    Parameters
    ----------
    from_logits : bool
        Predictions are logits: a sigmoid (one per row) or a softmax (one per class) is applied first.
    **options
        Options of the loss.

    Examples
    --------
    >>> import torch
    >>> from calibrary import losses
    >>> criterion = losses.MaximumMeanCalibrationError(bandwidth=0.2, from_logits=True)
    >>> criterion
    MaximumMeanCalibrationError(bandwidth=0.2, from_logits=True)
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.5]], requires_grad=True)
    >>> criterion(logits, torch.tensor([0, 1, 1])).requires_grad
    True
    """

    #: The function of this module; each class has its own.
    loss: Callable[..., Tensor]

    def __init__(self, *, from_logits: bool = False, **options: Any) -> None:
        super().__init__()
        self.from_logits = from_logits
        self.options = with_current_names(type(self).loss, options)

    def forward(self, y_prob: Tensor, y_true: Any, sample_weight: Any = None) -> Tensor:
        if self.from_logits:
            y_prob = torch.sigmoid(y_prob) if y_prob.ndim == 1 else torch.softmax(y_prob, dim=1)
        options = self.options if sample_weight is None else {**self.options, "sample_weight": sample_weight}
        return type(self).loss(y_true, y_prob, **options)

    def extra_repr(self) -> str:
        shown = {**self.options, **({"from_logits": True} if self.from_logits else {})}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


def _module(function: Callable[..., Tensor]) -> type[LossModule]:
    name = "".join(word.capitalize() for word in function.__name__.split("_"))
    first, *_ = (inspect.getdoc(function) or "").splitlines()
    text = f"{first}\n\nThe module of :func:`{function.__name__}`; see :class:`LossModule`."
    return type(name, (LossModule,), {"loss": staticmethod(function), "__doc__": text, "__module__": __name__})


ExpectedObservedRatio = _module(bias.expected_observed_ratio)
ExpectedSignedCalibrationError = _module(bias.expected_signed_calibration_error)
GebelCalibrationMeasure = _module(bias.gebel_calibration_measure)
GlobalSquaredBias = _module(bias.global_squared_bias)
MultiaccuracyError = _module(bias.multiaccuracy_error)
MulticlassDifferenceOfConfidenceAndAccuracy = _module(bias.multiclass_difference_of_confidence_and_accuracy)
ObservedExpectedRatio = _module(bias.observed_expected_ratio)
ParabolicWald = _module(bias.parabolic_wald)
PartitionedCalibrationError = _module(bias.partitioned_calibration_error)
SoftF1Score = _module(bias.soft_f1_score)
SpiegelhalterZ = _module(bias.spiegelhalter_z)
WellCalibrationRatio = _module(bias.well_calibration_ratio)
DifferentiableCalibrationError = _module(bins.differentiable_calibration_error)
RandomIntervalCalibrationError = _module(bins.random_interval_calibration_error)
SoftBinnedCalibrationError = _module(bins.soft_binned_calibration_error)
SurrogateIntervalCalibrationError = _module(bins.surrogate_interval_calibration_error)
AveragedTwoBinError = _module(cumulative.averaged_two_bin_error)
KolmogorovSmirnovCalibrationError = _module(cumulative.kolmogorov_smirnov_calibration_error)
KuiperCalibrationError = _module(cumulative.kuiper_calibration_error)
KernelDensityCalibrationError = _module(curves.kernel_density_calibration_error)
MeanSquaredCalibrationError = _module(curves.mean_squared_calibration_error)
SmoothLabelCalibrationError = _module(curves.smooth_label_calibration_error)
DetectionKernelCalibrationError = _module(detection.detection_kernel_calibration_error)
LocalizationAwareAdaptiveCalibrationError = _module(detection.localization_aware_adaptive_calibration_error)
QuadraticGlobalCalibration = _module(detection.quadratic_global_calibration)
SphericalGlobalCalibration = _module(detection.spherical_global_calibration)
LaplaceKernelCalibrationError = _module(embedding.laplace_kernel_calibration_error)
MaximumMeanCalibrationError = _module(embedding.maximum_mean_calibration_error)
AsymmetricSquaredError = _module(errors.asymmetric_squared_error)
GeneralizedSquaredError = _module(errors.generalized_squared_error)
HingeLoss = _module(errors.hinge_loss)
HuberLoss = _module(errors.huber_loss)
L1epsError = _module(errors.l1eps_error)
MeanAbsoluteError = _module(errors.mean_absolute_error)
PointwiseLpError = _module(errors.pointwise_lp_error)
SoftInsensitiveLoss = _module(errors.soft_insensitive_loss)
CalibrationEValue = _module(evidence.calibration_e_value)
BetaKernelCalibrationError = _module(neighbors.beta_kernel_calibration_error)
DirichletKernelCalibrationError = _module(neighbors.dirichlet_kernel_calibration_error)
KernelCalibrationConditionalSteinDiscrepancy = _module(pairs.kernel_calibration_conditional_stein_discrepancy)
SquaredKernelCalibrationErrorB = _module(pairs.squared_kernel_calibration_error_b)
SquaredKernelCalibrationErrorUl = _module(pairs.squared_kernel_calibration_error_ul)
SquaredKernelCalibrationErrorUq = _module(pairs.squared_kernel_calibration_error_uq)
LogitSmoothedCalibrationError = _module(residuals.logit_smoothed_calibration_error)
SmoothCalibrationErrorResidual = _module(residuals.smooth_calibration_error_residual)
BoundedBrier = _module(scores.bounded_brier)
BoundedLog = _module(scores.bounded_log)
BrierScore = _module(scores.brier_score)
DawidSebastianiScore = _module(scores.dawid_sebastiani_score)
DualFocalLoss = _module(scores.dual_focal_loss)
EntropicCalibrationDifference = _module(scores.entropic_calibration_difference)
FocalCalibrationLoss = _module(scores.focal_calibration_loss)
FocalLoss = _module(scores.focal_loss)
NegativeLogLikelihood = _module(scores.negative_log_likelihood)
NormalizedSquaredErrorScore = _module(scores.normalized_squared_error_score)
PowerScore = _module(scores.power_score)
ProperLinearScore = _module(scores.proper_linear_score)
PseudoSphericalScore = _module(scores.pseudo_spherical_score)
RankedProbabilityScore = _module(scores.ranked_probability_score)
RootBrierScore = _module(scores.root_brier_score)
SquaredAbsoluteRankedProbabilityScore = _module(scores.squared_absolute_ranked_probability_score)
