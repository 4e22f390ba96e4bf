# ruff: noqa: B018
"""Calls the documentation teaches, for mypy and pyright: every line must be accepted as it is written."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import calibrary as cal
import own

y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])
labels = [1, 2, 0]

assert_type(cal.expected_calibration_error(y, p), float)
assert_type(cal.expected_calibration_error(y, p, n_bins=10), float)
cal.expected_calibration_error(y, p, binning="mass", norm=2)
cal.expected_calibration_error(y, p, strategy="quantile", norm="l2")
cal.expected_calibration_error(labels, P, lens="class-wise", average="prevalence")
assert_type(cal.expected_calibration_error(labels, P, lens="class-wise", average=None), NDArray[np.float64])
cal.expected_calibration_error(y, p, sample_weight=[1, 2, 1, 1])
cal.expected_calibration_error(cal.predictions(y, p))
cal.expected_calibration_error(["no", "yes"], [0.1, 0.8], pos_label="yes")
cal.maximum_calibration_error(y, p, edges=[0, 0.5, 1])
cal.adaptive_calibration_error(y, p)
cal.brier_score(y, p)
cal.brier_score(labels, P, scale="sum")
cal.brier_score(y, p, reduction="none")
cal.negative_log_likelihood(y, p, eps=1e-12)
cal.spiegelhalter_z(y, p)
own.spiegelhalter_z_test(y, p).pvalue
cal.smooth_calibration_error_residual(y, p)
cal.integrated_calibration_index(y, p)
cal.cox_intercept_slope(y, p)
cal.kolmogorov_smirnov_calibration_error(y, p)
own.kolmogorov_smirnov_calibration_error_test(y, p)
cal.kuiper_calibration_error(y, p)
own.hosmer_lemeshow_test(y, p, n_bins=5)
own.hosmer_lemeshow_test(y, p, method="monte-carlo", n_resamples=99, rng=0)
own.hosmer_lemeshow_test(y, p, method=cal.MonteCarlo(n_resamples=99, rng=0))
cal.squared_kernel_calibration_error_uq(labels, P, bandwidth=0.3)
own.squared_kernel_calibration_error_uq_test(labels, P, method="monte-carlo", rng=0)
cal.detection_expected_calibration_error([1, 0], [0.9, 0.4], n_bins=10, min_count=1)
cal.detection_expected_calibration_error([1, 0], [0.9, 0.4], bins=10, min_count=1)
cal.quadratic_global_calibration([1, 0], [0.9, 0.4], n_missed=1)
cal.compute("ece", y, p, n_bins=5)
cal.compute(metric="ece", y_true=y, y_prob=p)
cal.verdict("ece<0.05", y, p, undecided="fail", judged_by="estimate").status
assert_type(cal.decide(cal.predictions(y, p), cal.Question(rng=0)), cal.results.Decision)
assert_type(cal.interval("ece", y, p), cal.results.IntervalResult)
assert_type(cal.interval("ece", y, p), cal.IntervalResult)
cal.test("ece", y, p, method="monte-carlo", n_resamples=99, rng=0)
cal.interval("ece", y, p, n_resamples=99, rng=0).confidence_interval.low
cal.interval("bs", y, p, method=cal.Bootstrap("percentile", n_resamples=99, rng=0))
low, high = cal.interval("bs", y, p, n_resamples=99, rng=0)
cal.compare("bs", y, p, [0.5] * 4, rng=0)
cal.expected_by_chance("ks", None, p, rng=0).quantile(0.95)
cal.evaluate(y, p)["ece"]
cal.evaluate(labels, P, lens="class-wise", intervals=True, tests=True, n_resamples=99, rng=0).to_dict()
cal.report(y, p, metrics=["ece"], n_resamples=99).save("report.html")
cal.recommend("binary", "test")
cal.catalogue["ece"].meaning
cal.reliability_bins(y, p, n_bins=2).outcome
cal.cumulative_difference(y, p).value
cal.score_decomposition(y, p)
cal.interval("oe", y, p)
cal.match_detections("truth.json", "results.json", iou_threshold=0.5)
cal.boxes([0], ["cat"], [[0, 0, 9, 9]], score=[0.9])
cal.lens.pairwise(0, 1)
cal.datasets.digits()
cal.adjust_pvalues([0.01, 0.04], "holm")
cal.softmax(P)
