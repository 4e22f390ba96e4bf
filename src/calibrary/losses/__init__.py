"""Differentiable metrics for PyTorch: the names, arguments and values of calibrary, with gradients.

    import calibrary.losses as losses
    p = torch.softmax(logits, dim=1)
    loss = losses.brier_score(y, p) + 0.5 * losses.soft_binned_calibration_error(y, p)
    loss.backward()

Every function takes labels and a tensor of probabilities, on any device and in any floating dtype, and returns a tensor
with one number that equals the metric. ``losses.LOSSES`` contains them by the metric's short name. Each is also a
module, ``losses.BrierScore(...)``, that is called as PyTorch calls a criterion: ``criterion(y_prob, y_true)``.
"""

from __future__ import annotations

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("calibrary.losses needs PyTorch: pip install 'calibrary[torch]'") from error

from calibrary.losses.bias import (
    calibration_e_value,
    expected_observed_ratio,
    expected_signed_calibration_error,
    gebel_calibration_measure,
    global_squared_bias,
    multiaccuracy_error,
    multiclass_difference_of_confidence_and_accuracy,
    observed_expected_ratio,
    parabolic_wald,
    partitioned_calibration_error,
    soft_f1_score,
    spiegelhalter_z,
    well_calibration_ratio,
)
from calibrary.losses.bins import (
    differentiable_calibration_error,
    random_interval_calibration_error,
    soft_binned_calibration_error,
    surrogate_interval_calibration_error,
)
from calibrary.losses.curves import (
    averaged_two_bin_error,
    kernel_density_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    mean_squared_calibration_error,
    smooth_label_calibration_error,
)
from calibrary.losses.declare import LOSSES, loss_of
from calibrary.losses.detection import (
    detection_kernel_calibration_error,
    localization_aware_adaptive_calibration_error,
    quadratic_global_calibration,
    spherical_global_calibration,
)
from calibrary.losses.modules import (
    AsymmetricSquaredError,
    AveragedTwoBinError,
    BetaKernelCalibrationError,
    BoundedBrier,
    BoundedLog,
    BrierScore,
    CalibrationEValue,
    DawidSebastianiScore,
    DetectionKernelCalibrationError,
    DifferentiableCalibrationError,
    DirichletKernelCalibrationError,
    DualFocalLoss,
    EntropicCalibrationDifference,
    ExpectedObservedRatio,
    ExpectedSignedCalibrationError,
    FocalCalibrationLoss,
    FocalLoss,
    GebelCalibrationMeasure,
    GeneralizedSquaredError,
    GlobalSquaredBias,
    HingeLoss,
    HuberLoss,
    KernelCalibrationConditionalSteinDiscrepancy,
    KernelDensityCalibrationError,
    KolmogorovSmirnovCalibrationError,
    KuiperCalibrationError,
    L1epsError,
    LaplaceKernelCalibrationError,
    LocalizationAwareAdaptiveCalibrationError,
    LogitSmoothedCalibrationError,
    LossModule,
    MaximumMeanCalibrationError,
    MeanAbsoluteError,
    MeanSquaredCalibrationError,
    MultiaccuracyError,
    MulticlassDifferenceOfConfidenceAndAccuracy,
    NegativeLogLikelihood,
    NormalizedSquaredErrorScore,
    ObservedExpectedRatio,
    ParabolicWald,
    PartitionedCalibrationError,
    PointwiseLpError,
    PowerScore,
    ProperLinearScore,
    PseudoSphericalScore,
    QuadraticGlobalCalibration,
    RandomIntervalCalibrationError,
    RankedProbabilityScore,
    RootBrierScore,
    SmoothCalibrationErrorResidual,
    SmoothLabelCalibrationError,
    SoftBinnedCalibrationError,
    SoftF1Score,
    SoftInsensitiveLoss,
    SphericalGlobalCalibration,
    SpiegelhalterZ,
    SquaredAbsoluteRankedProbabilityScore,
    SquaredKernelCalibrationErrorB,
    SquaredKernelCalibrationErrorUl,
    SquaredKernelCalibrationErrorUq,
    SurrogateIntervalCalibrationError,
    WellCalibrationRatio,
)
from calibrary.losses.neighbors import beta_kernel_calibration_error, dirichlet_kernel_calibration_error
from calibrary.losses.pairs import (
    kernel_calibration_conditional_stein_discrepancy,
    squared_kernel_calibration_error_b,
    squared_kernel_calibration_error_ul,
    squared_kernel_calibration_error_uq,
)
from calibrary.losses.residuals import (
    laplace_kernel_calibration_error,
    logit_smoothed_calibration_error,
    maximum_mean_calibration_error,
    smooth_calibration_error_residual,
)
from calibrary.losses.scores import (
    asymmetric_squared_error,
    bounded_brier,
    bounded_log,
    brier_score,
    dawid_sebastiani_score,
    dual_focal_loss,
    entropic_calibration_difference,
    focal_calibration_loss,
    focal_loss,
    generalized_squared_error,
    hinge_loss,
    huber_loss,
    l1eps_error,
    mean_absolute_error,
    negative_log_likelihood,
    normalized_squared_error_score,
    pointwise_lp_error,
    power_score,
    proper_linear_score,
    pseudo_spherical_score,
    ranked_probability_score,
    root_brier_score,
    soft_insensitive_loss,
    squared_absolute_ranked_probability_score,
)
from calibrary.losses.weight import WeightChoice, suggest_weight

__all__ = [
    "LOSSES", "AsymmetricSquaredError", "AveragedTwoBinError", "BetaKernelCalibrationError", "BoundedBrier",
    "BoundedLog", "BrierScore", "CalibrationEValue", "DawidSebastianiScore", "DetectionKernelCalibrationError",
    "DifferentiableCalibrationError", "DirichletKernelCalibrationError", "DualFocalLoss",
    "EntropicCalibrationDifference", "ExpectedObservedRatio", "ExpectedSignedCalibrationError",
    "FocalCalibrationLoss", "FocalLoss", "GebelCalibrationMeasure", "GeneralizedSquaredError", "GlobalSquaredBias",
    "HingeLoss", "HuberLoss", "KernelCalibrationConditionalSteinDiscrepancy", "KernelDensityCalibrationError",
    "KolmogorovSmirnovCalibrationError", "KuiperCalibrationError", "L1epsError", "LaplaceKernelCalibrationError",
    "LocalizationAwareAdaptiveCalibrationError", "LogitSmoothedCalibrationError", "LossModule",
    "MaximumMeanCalibrationError", "MeanAbsoluteError", "MeanSquaredCalibrationError", "MultiaccuracyError",
    "MulticlassDifferenceOfConfidenceAndAccuracy", "NegativeLogLikelihood", "NormalizedSquaredErrorScore",
    "ObservedExpectedRatio", "ParabolicWald", "PartitionedCalibrationError", "PointwiseLpError", "PowerScore",
    "ProperLinearScore", "PseudoSphericalScore", "QuadraticGlobalCalibration", "RandomIntervalCalibrationError",
    "RankedProbabilityScore", "RootBrierScore", "SmoothCalibrationErrorResidual", "SmoothLabelCalibrationError",
    "SoftBinnedCalibrationError", "SoftF1Score", "SoftInsensitiveLoss", "SphericalGlobalCalibration",
    "SpiegelhalterZ", "SquaredAbsoluteRankedProbabilityScore", "SquaredKernelCalibrationErrorB",
    "SquaredKernelCalibrationErrorUl", "SquaredKernelCalibrationErrorUq", "SurrogateIntervalCalibrationError",
    "WeightChoice", "WellCalibrationRatio", "asymmetric_squared_error", "averaged_two_bin_error",
    "beta_kernel_calibration_error", "bounded_brier", "bounded_log", "brier_score", "calibration_e_value",
    "dawid_sebastiani_score", "detection_kernel_calibration_error", "differentiable_calibration_error",
    "dirichlet_kernel_calibration_error", "dual_focal_loss", "entropic_calibration_difference",
    "expected_observed_ratio", "expected_signed_calibration_error", "focal_calibration_loss", "focal_loss",
    "gebel_calibration_measure", "generalized_squared_error", "global_squared_bias", "hinge_loss", "huber_loss",
    "kernel_calibration_conditional_stein_discrepancy", "kernel_density_calibration_error",
    "kolmogorov_smirnov_calibration_error", "kuiper_calibration_error", "l1eps_error",
    "laplace_kernel_calibration_error", "localization_aware_adaptive_calibration_error",
    "logit_smoothed_calibration_error", "loss_of", "maximum_mean_calibration_error", "mean_absolute_error",
    "mean_squared_calibration_error", "multiaccuracy_error", "multiclass_difference_of_confidence_and_accuracy",
    "negative_log_likelihood", "normalized_squared_error_score", "observed_expected_ratio", "parabolic_wald",
    "partitioned_calibration_error", "pointwise_lp_error", "power_score", "proper_linear_score",
    "pseudo_spherical_score", "quadratic_global_calibration", "random_interval_calibration_error",
    "ranked_probability_score", "root_brier_score", "smooth_calibration_error_residual",
    "smooth_label_calibration_error", "soft_binned_calibration_error", "soft_f1_score", "soft_insensitive_loss",
    "spherical_global_calibration", "spiegelhalter_z", "squared_absolute_ranked_probability_score",
    "squared_kernel_calibration_error_b", "squared_kernel_calibration_error_ul",
    "squared_kernel_calibration_error_uq", "suggest_weight", "surrogate_interval_calibration_error",
    "well_calibration_ratio",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
