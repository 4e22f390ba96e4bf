"""The table of all public names of calibrary: the kind of each name, its first version, and the module that defines it.

``calibrary.__getattr__``, ``dir(calibrary)``, ``calibrary.results``, the stub files and the documentation of public
names are generated from this table, which is the only list of them. A new metric needs one word here.
"""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """One public name: ``module`` is where it is defined, ``since`` the first version that has it."""

    name: str
    module: str
    kind: str
    since: str

    @property
    def listed(self) -> bool:
        """Whether ``dir(calibrary)`` lists the name, if its package is installed."""
        return self.name in FAMILIAR or self.kind not in ("metric", "test", "helper", "result")

    @property
    def starred(self) -> bool:
        """Whether ``from calibrary import *`` imports the name."""
        return self.kind == "metric" or (self.listed and self.kind != "extra")


#: The metrics that readers of the field know: ``familiar`` on their cards.
FAMILIAR = frozenset((
    "adaptive_calibration_error", "brier_score", "cox_intercept_slope", "detection_expected_calibration_error",
    "expected_calibration_error", "expected_observed_ratio", "focal_loss", "hosmer_lemeshow",
    "integrated_calibration_index", "kolmogorov_smirnov_calibration_error", "maximum_calibration_error",
    "maximum_mean_calibration_error", "negative_log_likelihood", "ranked_probability_score",
    "smooth_calibration_error_residual", "spiegelhalter_z",
))  # fmt: skip

#: For each kind, lines of a version, a module and the names that it defines.
_TABLE = {
    # functions other than metrics
    "verb": """
        0.3 application.notebook app
        0.1 data.arrays matched_detections
        0.1 data.boxes boxes
        0.1 data.checks sigmoid softmax
        0.1 data.matching match_detections
        0.1 data.predictions predictions
        0.1 data.readers read_yolo
        0.2 data.segmentation segmentation
        0.2 data.survival horizon
        0.1 evaluation evaluate
        0.1 inference.methods.multiplicity adjust_pvalues
        0.4 grouping.segments cut
        0.3 inference.overall.decision decide
        0.2 inference.overall.sequential calibration_monitor
        0.4 inference.verbs.chance expected_by_chance
        0.1 inference.verbs.comparison compare
        0.1 inference.verbs.interval interval
        0.2 inference.verbs.power power sample_size
        0.1 inference.verbs.test test
        0.2 inference.verbs.verdict verdict
        0.3 language.judge judged
        0.3 language.sampled sampled_answers
        0.1 lookup.by_name catalogue compute
        0.1 lookup.recommend recommend
        0.3 lookup.review_tables notation
        0.1 metrics.point.consistency consistency_confidence
        0.2 metrics.point.scoring_functions check_propriety scoring_function
        0.2 recalibrate.gain recalibration_gain
        0.1 reporting.compose report
        0.3 reporting.validated validation_page
        0.3 shift.curve shift_curve
        0.3 shift.target under_shift
        0.3 secondorder.outside outside_rows
        0.3 secondorder.verb ensemble
        0.4 scale.stream watch
        0.4 trial.plan plan
        0.4 trial.pooled pooled
        0.3 validation.verb validate
    """,
    # tables and curves
    "table": """
        0.1 diagnostics.grades multiple_binomial_test
        0.2 diagnostics.reliability set_coverage_curve honest_band
        0.1 diagnostics.reliability cumulative_difference ece_knn_curve reliability_bins
        0.2 diagnostics.decisions decision_curve murphy_curve regret_curve
        0.1 diagnostics.decomposition score_decomposition
        0.1 diagnostics.detection d_ece_map
        0.2 diagnostics.detection detection_thresholds
        0.2 diagnostics.direction confidence_direction
        0.3 diagnostics.grades grade_tests
        0.1 maps.loess smooth_calibration_curve
        0.4 trial.curves imputed_curve
    """,
    # metrics; those without a row in Table 2 are listed in this order in the catalogue
    "metric": """
        0.1 metrics.bins.t_cal debiased_plugin_estimator
        0.2 metrics.point.set_coverage set_coverage
        0.1 metrics.cumulative kolmogorov_smirnov_calibration_error kuiper_calibration_error
        0.2 metrics.decision.cost net_benefit decision_loss bounded_brier bounded_log
        0.1 metrics.point.brier brier_score root_brier_score stratified_brier_score
        0.1 metrics.detection.binned average_calibration_error detection_expected_calibration_error
        0.1 metrics.detection.binned localization_aware_expected_calibration_error
        0.1 metrics.detection.binned localization_aware_adaptive_calibration_error detection_kernel_calibration_error
        0.1 metrics.detection.objects expected_global_calibration_error quadratic_global_calibration
        0.1 metrics.detection.objects spherical_global_calibration
        0.2 metrics.detection.objects object_calibration_error
        0.1 metrics.bins.interval surrogate_interval_calibration_error random_interval_calibration_error
        0.1 metrics.bins.interval interval_calibration_error
        0.1 metrics.bins.expected expected_calibration_error maximum_calibration_error adaptive_calibration_error
        0.1 metrics.bins.expected thresholded_adaptive_calibration_error imbalanced_calibration_error
        0.1 metrics.bins.expected region_balanced_calibration_error label_binned_calibration_error
        0.1 metrics.bins.expected contraharmonic_calibration_error averaged_calibration_error
        0.2 metrics.curve.distance honest_error calibration_error_at_level
        0.1 metrics.bins.overlapping calbin nearest_neighbor_calibration_error
        0.2 metrics.cumulative averaged_two_bin_error
        0.1 metrics.kernel.residual smooth_calibration_error_residual logit_smoothed_calibration_error
        0.1 metrics.curve.cox cox_intercept_slope
        0.1 metrics.bins.hosmer_lemeshow hosmer_lemeshow
        0.1 metrics.kernel.squared squared_kernel_calibration_error_b squared_kernel_calibration_error_uq
        0.1 metrics.kernel.squared squared_kernel_calibration_error_ul squared_kernel_calibration_error
        0.1 metrics.point.bias global_squared_bias multiclass_difference_of_confidence_and_accuracy
        0.1 metrics.point.bias expected_observed_ratio observed_expected_ratio
        0.2 inference.overall.sequential calibration_e_value ehl
        0.1 metrics.bins.combined harmonic_calibration_score well_calibration_ratio gebel_calibration_measure
        0.1 metrics.bins.debiased debiased_squared_calibration_error debiased_calibration_error
        0.1 metrics.bins.adaptive fit_on_the_test_calibration_error mean_split_calibration_error sweep_calibration_error
        0.1 metrics.bins.partition test_based_calibration_error
        0.1 metrics.bins.partition proximity_informed_calibration_error proximity_bias_index
        0.1 metrics.bins.partition partitioned_calibration_error general_calibration_error
        0.1 metrics.bins.expected expected_signed_calibration_error weighted_subset_miscalibration_score
        0.1 metrics.bins.overlapping soft_binned_calibration_error differentiable_calibration_error
        0.1 metrics.bins.top_k top_k_calibration_error average_top_k_calibration_error
        0.2 metrics.curve.cross_fitted calibration_loss variational_error
        0.1 metrics.curve.curve_tests statistical_beta_calibration knn_chi_squared_reliability parabolic_wald
        0.1 metrics.curve.errors calibration_map_error integrated_calibration_index calibration_error_percentile e50
        0.1 metrics.curve.errors e90 emax piecewise_linear_calibration_error piecewise_linear_logit_calibration_error
        0.1 metrics.curve.errors fott_beta_calibration_error
        0.1 metrics.curve.summaries estimated_calibration_index reliability_map_score
        0.1 metrics.curve.distance lower_distance interval_partition_distance
        0.2 metrics.segments field_relative_calibration_error multicalibration_error multiaccuracy_error
        0.2 metrics.segments.grouping_loss grouping_loss
        0.1 metrics.kernel.vector beta_kernel_calibration_error dirichlet_kernel_calibration_error
        0.1 metrics.kernel.embedded maximum_mean_calibration_error laplace_kernel_calibration_error
        0.1 metrics.kernel.residual lipschitz_calibration_error
        0.1 metrics.kernel.smooth mean_squared_calibration_error smooth_label_calibration_error
        0.1 metrics.kernel.smooth kernel_density_calibration_error
        0.1 metrics.kernel.stein kernel_calibration_conditional_stein_discrepancy
        0.2 metrics.point.consistency distribution_calibration_error entropy_calibration_error ranking_calibration_score
        0.1 metrics.point.consistency consistency_error expected_individual_calibration_error
        0.1 metrics.point.logarithmic negative_log_likelihood focal_loss dual_focal_loss focal_calibration_loss
        0.1 metrics.point.logarithmic entropic_calibration_difference
        0.1 metrics.point.losses mean_absolute_error pointwise_lp_error l1eps_error hinge_loss huber_loss
        0.1 metrics.point.losses soft_insensitive_loss asymmetric_squared_error generalized_squared_error
        0.1 metrics.point.moments dawid_sebastiani_score normalized_squared_error_score spiegelhalter_z
        0.1 metrics.point.ordinal ranked_probability_score squared_absolute_ranked_probability_score
        0.1 metrics.point.power pseudo_spherical_score power_score proper_linear_score
        0.1 metrics.point.success success_rate misclassification_loss soft_f1_score
        0.2 metrics.selective area_under_risk_coverage_curve excess_area_under_risk_coverage_curve
        0.2 metrics.selective area_under_generalized_risk_coverage_curve area_under_roc_curve
        0.2 metrics.selective rms_calibration_error rank_calibration_error
    """,
    # hypothesis tests that belong to one metric: old names of ``calibrary.test`` with the metric's id
    "test": """
        0.2 inference.overall.sequential calibration_e_value_test ehl_test
        0.2 metrics.bins.debiased debiased_calibration_error_test debiased_squared_calibration_error_test
        0.1 metrics.bins.hosmer_lemeshow hosmer_lemeshow_test
        0.1 metrics.bins.t_cal t_cal_test
        0.1 metrics.cumulative kolmogorov_smirnov_calibration_error_test kuiper_calibration_error_test
        0.1 metrics.curve.curve_tests statistical_beta_calibration_test knn_chi_squared_reliability_test
        0.1 metrics.curve.cox cox_intercept_slope_test
        0.2 metrics.curve.cross_fitted variational_error_test
        0.1 metrics.curve.curve_tests parabolic_wald_test
        0.1 metrics.kernel.embedded laplace_kernel_calibration_error_test maximum_mean_calibration_error_test
        0.1 metrics.kernel.squared squared_kernel_calibration_error_b_test squared_kernel_calibration_error_ul_test
        0.1 metrics.kernel.squared squared_kernel_calibration_error_uq_test
        0.1 metrics.kernel.stein kernel_calibration_conditional_stein_discrepancy_test
        0.1 metrics.point.moments spiegelhalter_z_test
        0.2 metrics.segments multiaccuracy_error_test multicalibration_error_test
    """,
    # classes that users construct, and errors and warnings that they may catch
    "noun": """
        0.1 base.errors CalibrationWarning UnknownMetricError
        0.3 base.errors RefusedCallError RefusedError
        0.1 data.boxes Boxes
        0.1 data.lens Lens
        0.1 data.matches Matches
        0.1 data.predictions Predictions
        0.2 data.survival Horizon
        0.2 inference.draw.null Consistency MonteCarlo
        0.2 inference.methods.asymptotic Asymptotic
        0.2 inference.methods.bootstrap Bootstrap
        0.2 inference.methods.inversion Inversion
        0.2 inference.methods.triangle Triangle
        0.2 inference.overall.sequential CalibrationMonitor
        0.1 maps.reliability ReliabilityMap
        0.2 question Question
        0.2 recalibrate.recalibrator Recalibrator
        0.1 reporting.model Report
        0.3 reporting.settings ReportSettings
        0.4 scale.stream Watch
    """,
    # modules that need no optional package
    "room": """
        0.1 datasets datasets
        0.2 diagnostics diagnostics
        0.1 grouping grouping
        0.1 kernels kernels
        0.3 language language
        0.1 data.lens lens
        0.1 maps maps
        0.1 metrics metrics
        0.2 models models
        0.2 recalibrate recalibrate
        0.3 results results
        0.1 study study
    """,
    # modules that need an optional package, for some or for all of their functions
    "extra": """
        0.2 gallery gallery
        0.1 losses losses
        0.2 mlflow mlflow
        0.1 plots plots
        0.2 scale scale
        0.1 sklearn sklearn
        0.4 wandb wandb
    """,
    # functions that go with one metric or table and are documented with it; ``dir`` does not list them
    "helper": """
        0.1 data.lens code_matrix
        0.2 diagnostics.detection above_thresholds
        0.2 inference.verbs.power neighbor_power neighbor_sample_size
        0.2 metrics.cumulative averaged_two_bin_null_mean
        0.1 metrics.point.consistency consistency_confidence_logits
        0.1 metrics.point.losses hinge_loss_scores
        0.1 metrics.point.moments dawid_sebastiani_score_moments normalized_squared_error_score_moments
        0.2 metrics.point.ordinal count_ranked_probability_score
        0.1 models.ecoc ls_ecoc ls_ecoc_r
        0.1 models.leave_one_out jackknife_predictions
    """,
    # classes of results, which users need not construct; ``calibrary.results`` lists them, ``dir(calibrary)`` does not
    "result": """
        0.3 application.notebook AppFrame
        0.2 data.segmentation Pixels
        0.4 data.survival HorizonGroup
        0.1 diagnostics.grades MultipleBinomialResult RatioInterval
        0.2 diagnostics.reliability CoverageCurve HonestBand
        0.1 diagnostics.reliability CumulativeDifference NeighborCurve ReliabilityBins
        0.2 diagnostics.decisions DecisionCurve MurphyCurve RegretCurve
        0.1 diagnostics.decomposition BinnedDecomposition CorpDecomposition MurphyDecomposition TrueDecomposition
        0.1 diagnostics.detection DetectionMap
        0.2 diagnostics.detection DetectionThresholds
        0.2 diagnostics.direction ConfidenceDirection
        0.3 diagnostics.grades GradeTests
        0.1 evaluation Evaluation
        0.2 evaluation Row
        0.1 inference.draw.null MonteCarloResult NullDistribution
        0.2 inference.overall.decision Decision DecisionRow
        0.2 inference.overall.sequential Alternative EValueResult
        0.1 inference.result IntervalResult
        0.2 inference.result ConfidenceInterval
        0.4 inference.result Estimate
        0.1 inference.verbs.chance ExpectedByChance
        0.1 inference.verbs.comparison Comparison
        0.4 inference.verbs.imputed RubinResult
        0.2 inference.verbs.power Power SampleSize
        0.2 inference.verbs.verdict Verdict
        0.3 language.judge JudgedResult
        0.3 language.sampled SampledResult
        0.2 lookup.by_name Catalogue
        0.1 lookup.recommend Recommendation
        0.3 lookup.recommend Reason Recommendations
        0.3 lookup.review_tables ReviewTable
        0.1 metrics.bins.hosmer_lemeshow ClassWiseHosmerLemeshowResult HosmerLemeshowResult
        0.1 metrics.bins.t_cal TCalResult
        0.1 metrics.cumulative CumulativeTestResult
        0.1 metrics.curve.curve_tests BetaCalibrationTestResult NeighborTestResult ParabolicWaldResult
        0.1 metrics.curve.cox CoxResult CoxTestResult
        0.2 metrics.curve.cross_fitted CalibrationLoss VariationalTestResult
        0.2 metrics.curve.distance HonestError
        0.2 metrics.kernel.embedded EmbeddedTestResult
        0.2 metrics.kernel.pairs PairTestResult
        0.2 metrics.machinery.measure Parts
        0.1 metrics.machinery.declare TestResult
        0.2 metrics.machinery.declare BonferroniResult
        0.1 metrics.machinery.entry Entry
        0.1 metrics.machinery.facts Correction
        0.2 metrics.point.consistency EntropyDifference
        0.2 metrics.point.scoring_functions Propriety ScoringFunction
        0.2 metrics.point.set_coverage SetCoverage
        0.2 metrics.segments.grouping_loss GroupingLoss
        0.2 metrics.segments SegmentsTestResult
        0.1 models.leave_one_out JackknifePredictions
        0.2 recalibrate.table MapGain RecalibrationGain
        0.3 recalibrate.segment_gain SegmentGain SegmentRow
        0.1 reporting.parts GroupRow
        0.2 reporting.model ClassRow
        0.3 shift.curve ShiftCurve
        0.3 shift.target ShiftResult
        0.3 secondorder.calibration EnsembleMean EnsembleMember EnsembleMembers EnsembleMixture
        0.3 secondorder.uncertainty Detector EnsembleDecomposition UncertaintyParts
        0.3 secondorder.outside ConfidenceSummary DetectorGain OutsideResult RiskWithOutside
        0.3 secondorder.verb EnsembleResult
        0.3 secondorder.spread EnsembleSpread
        0.4 trial.curves ImputedCurve PooledCurve
        0.4 trial.effects OneStage
        0.4 trial.plan Plan
        0.4 trial.pooled CentreRow LeaveOneOut Pooled PooledRow
        0.3 validation.result Validation ValidationRow
        0.3 validation.corrections Instability ValidationCurve
        0.3 validation.tripod TripodTable
    """,
}


def _names() -> dict[str, Name]:
    found: dict[str, Name] = {}
    for kind, text in _TABLE.items():
        for since, module, *names in map(str.split, text.strip().splitlines()):
            for name in names:
                if name in found:
                    raise ValueError(f"{name} occurs twice in the table of public names")
                found[name] = Name(name, f"calibrary.{module}", kind, since)
    return found


#: Every public name, including those that ``dir`` does not list.
PUBLIC = _names()

#: Modules that cannot be imported without an optional package; ``dir`` lists them if the package is installed.
NEEDS = {"losses": "torch", "mlflow": "mlflow"}

#: Old names and their new names; the old names still work, with a warning.
RENAMED = {
    "NeighbourCurve": "NeighborCurve",
    "NeighbourTestResult": "NeighborTestResult",
    "ConsistencyBand": "ExpectedByChance",
    "ReadingBand": "ExpectedByChance",
    "generalised_squared_error": "generalized_squared_error",
    "localisation_aware_adaptive_calibration_error": "localization_aware_adaptive_calibration_error",
    "localisation_aware_expected_calibration_error": "localization_aware_expected_calibration_error",
    "nearest_neighbour_calibration_error": "nearest_neighbor_calibration_error",
    "normalised_squared_error_score": "normalized_squared_error_score",
    "normalised_squared_error_score_moments": "normalized_squared_error_score_moments",
}

#: Names that were accessible up to 0.2 without being listed, and the module to import each from; they give a warning.
WITHDRAWN = {
    "Data": "calibrary.data",
    "as_data": "calibrary.data",
    "brownian_abs_max_log_sf": "calibrary.numerics.laws",
    "brownian_abs_max_sf": "calibrary.numerics.laws",
    "brownian_range_log_sf": "calibrary.numerics.laws",
    "brownian_range_sf": "calibrary.numerics.laws",
    "calibration_curve_gap": "calibrary.metrics.curve.distance",
    "compare_models": "calibrary.reporting",
    "debiased_calibration_test": "calibrary.metrics.bins.debiased",
    "step_down_max_t": "calibrary.inference",
    "step_down_min_p": "calibrary.inference",
}

#: Names of functions in other packages, each with the function of calibrary (or of one of its modules) that is called
#: in the same way. ``dir`` does not list these names. All names of a metric work too, such as ``calibrary.ece``.
KNOWN = {
    "CalibrationDisplay": "sklearn.CalibrationDisplay",  # scikit-learn
    "brier_score_loss": "sklearn.brier_score_loss",
    "calibration_curve": "sklearn.calibration_curve",
    "roc_auc_score": "area_under_roc_curve",
    "reliability_diagram": "plots.plot_reliability",
    "smooth_reliability_diagram": "plots.plot_smooth_reliability",
}

#: Names in other packages of functions that are called differently here, each with the call to use instead.
INSTEAD = {
    "BetaCalibration": "calibrary.Recalibrator('beta').fit(y_prob, y_true)",  # netcal
    "HistogramBinning": "calibrary.Recalibrator('histogram').fit(y_prob, y_true)",
    "IsotonicRegression": "calibrary.Recalibrator('isotonic').fit(y_prob, y_true)",
    "LogisticCalibration": "calibrary.Recalibrator('platt').fit(y_prob, y_true)",
    "ReliabilityDiagram": "calibrary.plots.plot_reliability(y_true, y_prob)",
    "TemperatureScaling": "calibrary.Recalibrator('temperature').fit(y_prob, y_true)",
    "temperature_scaling": "calibrary.Recalibrator('temperature').fit(y_prob, y_true)",
    "platt_scaling": "calibrary.Recalibrator('platt').fit(y_prob, y_true)",
    "isotonic_regression": "calibrary.Recalibrator('isotonic').fit(y_prob, y_true)",
    "beta_calibration": "calibrary.Recalibrator('beta').fit(y_prob, y_true)",
    "CalibratedClassifierCV": "calibrary.Recalibrator('isotonic').fit(y_prob, y_true), with held-out probabilities",
    "CalibrationError": "calibrary.expected_calibration_error(y_true, y_prob)",  # torchmetrics
    "calibration_error": "calibrary.expected_calibration_error(y_true, y_prob)",
    "binary_calibration_error": "calibrary.expected_calibration_error(y_true, y_prob)",
    "multiclass_calibration_error": "calibrary.expected_calibration_error(y_true, y_prob)",
    "rel_diagram": "calibrary.plots.plot_smooth_reliability(y_true, y_prob)",  # relplot
    "get_ece": "calibrary.expected_calibration_error(y_true, y_prob)",  # uncertainty-calibration
    "get_top_calibration_error": "calibrary.debiased_calibration_error(y_true, y_prob, lens='top-label')",
    "get_calibration_error": "calibrary.debiased_calibration_error(y_true, y_prob, lens='class-wise')",
    "kolmogorov_smirnov_p_value": "calibrary.test('ecce_mad', y_true, y_prob, method='asymptotic').pvalue",
    "kuiper_p_value": "calibrary.test('ecce_r', y_true, y_prob, method='asymptotic').pvalue",
    "spiegelhalter_p_value": "calibrary.test('spiegelhalter', y_true, y_prob).pvalue",
    "cumulative_differences": "calibrary.cumulative_difference(y_true, y_prob)",
    "CalibrationEvaluator": "calibrary.evaluate(y_true, y_prob)",  # pycaleva
    "CalibrationMetrics": "calibrary.evaluate(y_true, y_prob)",  # calzone
    "CalibrationReport": "calibrary.report(y_true, y_prob)",
    "hosmer_lemeshow_p_value": "calibrary.test('hl', y_true, y_prob).pvalue",
    "conf_ECE": "calibrary.expected_calibration_error(y_true, y_prob, lens='top-label')",
    "rps_score": "calibrary.ranked_probability_score(y_true, y_prob)",  # scoringrules
    "log_score": "calibrary.negative_log_likelihood(y_true, y_prob)",
}


def modules_of_metrics() -> list[str]:
    """The modules that declare metrics or their tests, in the order of the table."""
    return list(dict.fromkeys(name.module for name in PUBLIC.values() if name.kind in ("metric", "test")))
