"""Newton's method with one or two unknowns solves its equations without a library call."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from calibrary.numerics.solve.newton import _solve, _solve_few, logistic_loss, losses_of_groups, minimize, minimize_each


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_unknowns_are_solved_as_by_the_library(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 20)) * np.array([1.0, 1e4])[:n, None]
    hessian, gradient = x @ x.T, rng.normal(size=n)
    np.testing.assert_allclose(_solve_few(hessian, gradient), np.linalg.solve(hessian, gradient), rtol=1e-9)
    np.testing.assert_array_equal(_solve(hessian, gradient), _solve_few(hessian, gradient))


def test_singular_equations_go_the_general_way():
    alike = np.array([[2.0, 2.0], [2.0, 2.0]])
    assert _solve_few(alike, np.ones(2)) is None
    assert _solve_few(np.zeros((1, 1)), np.ones(1)) is None
    np.testing.assert_allclose(alike @ _solve(alike, np.ones(2)), np.ones(2))


def test_numbers_of_a_file_are_read_without_pandas(tmp_path):
    (tmp_path / "p.csv").write_text("y,p,n\n0,0.25,3\n1,0.75,\n")
    code = (
        "import sys; from calibrary.tables.files import open_table\n"
        "found = open_table('p.csv').columns(['y', 'p'])\n"
        "print(found['y'].tolist(), found['p'].tolist(), found['y'].flags.writeable, 'pandas' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "[0, 1] [0.25, 0.75] True False", ran.stderr


def test_many_losses_at_once_have_the_minimum_of_each_alone():
    rng = np.random.default_rng(3)
    n, groups, ridge = 400, 7, 0.3
    group, x, offset = rng.integers(0, groups, n), rng.normal(size=n), rng.normal(size=n)
    weight = rng.integers(1, 4, n).astype(np.float64)
    ones = weight * (rng.random(n) < 0.3)
    each = losses_of_groups((np.ones(n), x), ones, weight, offset, group, groups, ridge)
    found = minimize_each(each, np.zeros((groups, 2)), longest=1.0, max_iter=50)
    for g in range(groups):
        rows = group == g
        design = np.stack([np.ones(rows.sum()), x[rows]])
        alone = logistic_loss(design, ones[rows], weight[rows], offset=offset[rows], ridge=ridge)
        np.testing.assert_allclose(found[g], minimize(alone, np.zeros(2)).x, rtol=1e-9, atol=1e-12)


def test_a_loss_without_a_minimum_is_undefined_and_the_others_are_not():
    x = np.array([-2.0, -1.0, 1.0, 2.0] * 3)
    ones = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])  # the first group is separated
    group = np.repeat([0, 1, 2], 4)
    x[8:] = 1.0  # the last one does not determine a slope
    each = losses_of_groups((np.ones(12), x), ones, np.ones(12), np.zeros(12), group, 3)
    found = minimize_each(each, np.zeros((3, 2)))
    assert np.isnan(found[[0, 2]]).all()
    alone = minimize(logistic_loss(np.stack([np.ones(4), x[4:8]]), ones[4:8], np.ones(4)), np.zeros(2)).x
    np.testing.assert_allclose(found[1], alone, rtol=1e-9, atol=1e-12)
