"""A test of a model, for pytest: it fails when the model is not calibrated, and says why."""

import calibrary as cal


def test_the_model_is_calibrated():
    y, p, _ = cal.datasets.breast_cancer("logistic")
    for condition in ("ece<0.1", "cis.slope>0.5"):
        cal.verdict(condition, y, p, n_resamples=199, rng=0).require()
