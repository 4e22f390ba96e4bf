"""An interval prepares a metric once: truths, draws and levels vary, rows and settings do not."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.sample import sample_of
from calibrary.inference.draw import fast as fast_module
from calibrary.inference.draw import population as population_module
from calibrary.inference.draw import statistic as statistic_module
from calibrary.inference.draw.lines import population
from calibrary.inference.draw.statistic import as_statistic
from calibrary.question import Question


def rows(n=600, k=2, seed=3):
    rng = np.random.default_rng(seed)
    if k == 2:
        p = rng.beta(1, 1, n)
        return (rng.random(n) < p**1.3).astype(int), p
    p = rng.dirichlet(np.ones(k), n)
    return (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), p


@pytest.fixture
def counted(monkeypatch):
    """How often forms are prepared and views are asked for."""
    counts = Counter()

    def watch(module, name):
        plain = getattr(module, name)

        def counting(*arguments, **keywords):
            counts[name] += 1
            return plain(*arguments, **keywords)

        monkeypatch.setattr(module, name, counting)

    watch(statistic_module, "fast")
    watch(population_module, "views_of")
    watch(fast_module, "views_of")
    return counts


@pytest.mark.parametrize("id", ["ece", "mce", "ace", "ecce_mad", "ece_db", "mmce"])
def test_an_inverted_interval_prepares_its_form_at_most_twice(counted, id):
    result = cal.interval(id, *rows(), method="inversion", rng=0, n_resamples=199)
    assert result.high > result.low
    assert 1 <= counted["fast"] <= 2
    assert counted["views_of"] <= 6


def test_several_classes_are_prepared_once_too(counted):
    cal.interval("ece", *rows(k=4), method="inversion", rng=0, n_resamples=199)
    assert counted["fast"] <= 2
    assert counted["views_of"] <= 8  # one for each class, and not one for each class and truth


def test_a_triangle_prepares_labels_and_rows(counted):
    cal.interval("ece", *rows(), method="triangle", rng=0, n_resamples=99)
    assert counted["fast"] == 2


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("options", [{}, {"lens": "class-wise"}])
def test_what_was_prepared_gives_the_values_of_a_new_preparation(k, options):
    y, p = rows(k=k)
    if k == 2:
        options = {}
    sample, question = sample_of(cal.predictions(y, p)), Question(**options)
    kept = as_statistic("ece", sample, question)
    for shift in (0.0, 0.05, 0.3):
        truth = np.clip(p + shift * (p[::-1] - p), 0.0, 1.0)
        fresh = as_statistic("ece", sample, question)
        assert population(kept, truth) == population(fresh, truth)


def test_a_path_of_other_rows_is_prepared_anew():
    y, p = rows()
    statistic = as_statistic("ece", sample_of(cal.predictions(y, p)), Question())
    labels = statistic.path(statistic.sample.null())
    assert statistic.path(statistic.sample.null(np.full(len(p), 0.5))) is labels
    assert statistic.path(statistic.sample.bootstrap()) is not labels
    other = sample_of(cal.predictions(y[::2], p[::2]))
    assert replace(statistic, sample=other).path(other.null()) is not labels
    assert statistic.path(other.null()) is not labels
