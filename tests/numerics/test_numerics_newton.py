"""Newton's method with one or two unknowns solves its equations without a library call."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from calibrary.numerics.solve.newton import _solve, _solve_few


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
