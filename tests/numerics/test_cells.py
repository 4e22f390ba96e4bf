"""Cells of the unit interval: every value in its cell, on any path, and back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from adversarial import adversarial
from calibrary.numerics.cells import POSITIONS, Grid
from calibrary.numerics.compiled import cells as compiled

RESOLUTIONS = (16, 240, 960, 4800, 19200, 76800)


def one_by_one(c: float, g: int, levels_at_one: int) -> tuple[int, int]:
    """The documented algorithm, written out for one value."""
    right = c > 0.5
    d = 1 - c if right else c
    level = min(sum(d < 16.0**-i for i in range(1, 13)), levels_at_one if right else 12)
    scale = g * 16.0**level
    x = d * scale
    k = math.floor(x + 0.5)
    edge = (scale - k if right else k) / scale
    side = 0 if c == edge else 1 if (c > edge) != right else -1
    j = 2 * k + side
    q = 0 if side == 0 else min(max(math.floor((x - j // 2) * 2**28 + 0.5), 1), 2**28 - 1)
    left = (12 - level) * 2 * g + j
    middle = 12 * 2 * g + g
    return (2 * middle - left if right else left), q


def layout(grid: Grid) -> compiled.Layout:
    return compiled.layout(grid.resolution, grid.levels_at_one)


@pytest.mark.parametrize("g", RESOLUTIONS)
def test_numpy_compiled_and_the_literal_recipe_agree(g: int) -> None:
    grid, values = Grid(g), adversarial()
    cell, position = grid.locate(values)
    fast = np.empty_like(cell), np.empty_like(cell)
    compiled.locate(values, g, grid.levels_at_one, layout(grid), *fast)
    assert np.array_equal(cell, fast[0])
    assert np.array_equal(position, fast[1])
    some = np.r_[:30_000, len(values) - 2000 : len(values)]
    slow = np.array([one_by_one(float(c), g, grid.levels_at_one) for c in values[some]])
    assert np.array_equal(cell[some], slow[:, 0])
    assert np.array_equal(position[some], slow[:, 1])


@pytest.mark.parametrize("g", RESOLUTIONS)
def test_every_value_lies_in_its_cell_and_cells_are_in_order(g: int) -> None:
    grid, values = Grid(g), adversarial(1)
    cell, position = grid.locate(values)
    low, high, edge = grid.low(cell), grid.high(cell), cell % 2 == 0
    assert (low[edge] == values[edge]).all()
    assert (high[edge] == values[edge]).all()
    assert (low[~edge] < values[~edge]).all()
    assert (values[~edge] < high[~edge]).all()
    assert (np.diff(cell[np.argsort(values, kind="stable")]) >= 0).all()
    assert ((position > 0) == ~edge).all()
    assert (position < POSITIONS).all()
    assert cell.min() == 0
    assert cell.max() == grid.locate(np.ones(1))[0][0] < grid.size


@pytest.mark.parametrize("g", RESOLUTIONS)
def test_a_value_comes_back_from_its_cell_and_position(g: int) -> None:
    grid, values = Grid(g), adversarial(2)
    cell, position = grid.locate(values)
    back = grid.place(cell, position)
    assert (grid.locate(back)[0] == cell).all()
    assert (np.abs(back - values) <= grid.width(cell) / POSITIONS + 1.2e-16 * values).all()
    assert (back == values)[cell % 2 == 0].all()


@pytest.mark.parametrize("g", RESOLUTIONS)
def test_relative_width_is_small_down_to_the_finest_level(g: int) -> None:
    grid, values = Grid(g), adversarial(3)
    d = np.minimum(values, 1 - values)
    wide = (values <= 0.5) & (d > 16.0**-13) | (values > 0.5) & (d > 16.0 ** -(grid.levels_at_one + 1))
    cell = grid.locate(values)[0][wide]
    assert (grid.width(cell) <= 16 / g * d[wide] * (1 + 1e-12)).all()
    inside = cell % 2 == 1
    assert np.allclose((grid.high(cell) - grid.low(cell))[inside], grid.width(cell)[inside], rtol=1e-3, atol=2.3e-16)


@pytest.mark.parametrize(("g", "absent"), [(240, (25, 50, 100)), (4800, ()), (19200, ()), (76800, ())])
def test_edges_of_the_usual_bins_are_cells(g: int, absent: tuple[int, ...]) -> None:
    grid = Grid(g)
    for bins in (2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 25, 30, 40, 50, 60, 75, 80, 100):
        on_edge = (grid.locate(np.array([float(Fraction(k, bins)) for k in range(bins + 1)]))[0] % 2 == 0).all()
        assert on_edge == (bins not in absent and (g % bins == 0)), bins


@pytest.mark.parametrize(("fine", "coarse"), [(76800, 19200), (19200, 240), (960, 240), (4800, 960)])
def test_coarser_cells_hold_what_was_in_the_finer_ones(fine: int, coarse: int) -> None:
    values = adversarial(4)
    values = values[values < 1 - 1e-11]  # nearer to 1 the two grids have different last levels
    cell, position = Grid(fine).locate(values)
    n = np.ones_like(cell) * 3
    new, sums = Grid(fine).coarser(Grid(coarse), cell, n, 3 * position)
    straight, straight_position = Grid(coarse).locate(values)
    assert np.array_equal(new, straight)
    off = np.abs(sums / 3 - straight_position) / POSITIONS * Grid(coarse).width(new)
    assert (off <= 2 * Grid(coarse).width(new) / POSITIONS + 2.3e-16 * values).all()


def test_coarser_keeps_the_order_next_to_one() -> None:
    values = np.sort(1 - 10.0 ** -np.random.default_rng(0).uniform(10, 17, 5000))
    cell, position = Grid(19200).locate(values)
    new, sums = Grid(19200).coarser(Grid(240), cell, np.ones_like(cell), position)
    assert (np.diff(new) >= 0).all()
    assert np.allclose(Grid(240).place(new, sums), values, rtol=0, atol=1e-15)


def test_sums_by_cell_count_values_weights_and_positions() -> None:
    rng = np.random.default_rng(0)
    values, labels = adversarial(5), None
    labels = (rng.random(len(values)) < values).astype(np.uint8)
    weights = rng.integers(0, 1000, len(values))
    grid = Grid(960)
    cell, position = grid.locate(values)
    sums = np.zeros((2 * grid.size + 2, 2), dtype=np.int64)
    compiled.add(values, labels, weights, 960, grid.levels_at_one, layout(grid), sums)
    slow = np.zeros_like(sums)
    place = np.array([compiled.place_of(int(code), len(sums) // 2) for code in 2 * cell + labels])
    np.add.at(slow, place, np.column_stack([weights, weights * position]))
    assert np.array_equal(sums, slow)


def test_packed_sums_are_emptied_when_they_are_full() -> None:
    rng = np.random.default_rng(0)
    values = rng.choice([0.3001, 0.2999, 0.5, 0.9999999], 400_000)
    labels = (rng.random(len(values)) < 0.9).astype(np.uint8)
    grid = Grid(960)
    sums, slow = (np.zeros((2 * grid.size + 2, 2), dtype=np.int64) for _ in range(2))
    packed = np.zeros(len(sums), dtype=np.int64)
    compiled.add_packed(values, labels, 960, grid.levels_at_one, layout(grid), packed, sums)
    compiled.add(values, labels, np.ones(len(values), dtype=np.int64), 960, grid.levels_at_one, layout(grid), slow)
    assert sums[:, 0].max() >= 65535  # it happened
    sums[:, 0] += packed >> 44
    sums[:, 1] += packed & (2**44 - 1)
    assert np.array_equal(sums, slow)


@pytest.mark.parametrize("bad", [0, -240, 100, 2.5, True, 2**40, "240"])
def test_resolution_must_be_a_multiple_of_sixteen(bad: object) -> None:
    with pytest.raises(ValueError, match=r"resolution=.* must be a multiple of 16"):
        Grid(bad)  # type: ignore[arg-type]


def test_cells_are_only_put_together_whole() -> None:
    with pytest.raises(ValueError, match="resolution=960 does not divide 4832"):
        Grid(4832).coarser(Grid(960), np.zeros(1, int), np.ones(1, int), np.zeros(1, int))


def test_the_first_invalid_row_is_found() -> None:
    fine, labels = np.array([0.0, 1.0, 0.5]), np.array([0, 1, 1], dtype=np.uint8)
    assert compiled.first_invalid(fine, labels) == -1
    for bad in (math.nan, -1e-300, 1 + 1e-15, math.inf):
        assert compiled.first_invalid(np.array([0.2, bad, bad]), labels) == 1
    assert compiled.first_invalid(fine, np.array([0, 1, 2], dtype=np.uint8)) == 2
