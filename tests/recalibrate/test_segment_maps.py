"""A map for each segment: shrunk to the common one, judged on other rows, refused where it does not help, kept."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import calibrary as cal
from calibrary.recalibrate.segments import SPREADS, fit_segments, segment_pvalue
from each import amount

SITES = np.array(["a", "b", "c", "d"])


def by_site(n=1600, spread=0.8, seed=0):
    """Four sites whose log odds are off by 0, +, - and 0, with the same stated probabilities."""
    rng = np.random.default_rng(seed)
    c = rng.beta(2, 3, n)
    site = SITES[rng.integers(0, 4, n)]
    off = np.select([site == "b", site == "c"], [spread, -spread], 0.0)
    return (rng.random(n) < expit(logit(c) + off)).astype(int), c, site


def test_offsets_and_slopes_maximize_the_penalized_likelihood():
    y, c, site = by_site(300)
    found = fit_segments("site", c, y, None, site)
    assert found.spread in SPREADS
    level = np.unique(site, return_inverse=True)[1]
    x = (logit(c) - found.center) / found.scale

    def loss(theta):
        eta = logit(c) + theta[:4][level] + theta[4:][level] * x
        return -np.sum(y * eta - np.logaddexp(0.0, eta)) + theta @ theta / (2.0 * found.spread**2)

    best = minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(np.concatenate([found.offset, found.slope]), best, atol=1e-4)


def test_the_evidence_is_the_integral_over_offsets_and_slopes():
    from calibrary.recalibrate.segments import _SegmentRows

    y, c, _ = by_site(60)
    z = logit(c)
    rows = _SegmentRows(z, z, y.astype(float), np.ones(60), np.zeros(60, dtype=np.intp), 1)
    spread = 0.4
    grid = np.linspace(-2.4, 2.4, 161)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    eta = z + a[..., None] + b[..., None] * z
    like = (y * eta - np.logaddexp(0.0, eta)).sum(-1) - (a**2 + b**2) / (2 * spread**2)
    cell = (grid[1] - grid[0]) ** 2 / (2 * np.pi * spread**2)
    exact = like.max() + np.log(np.exp(like - like.max()).sum() * cell)
    theta = rows.penalized(spread, np.zeros((2, 1)))
    assert rows.evidence(spread, theta) == pytest.approx(exact, abs=0.05)


def test_a_map_for_each_segment_helps_where_sites_differ():
    y, c, site = by_site()
    fitted = cal.Recalibrator("platt", by="site").fit(c, y, by=site)
    gain = fitted.segment_gain_
    assert gain.worth
    assert gain.n_clear("before") == 2
    assert gain.n_clear("after") == 0
    assert "would lower the log loss" in gain.sentence
    assert fitted.segments_.offset[1] > 0.3 > -0.3 > fitted.segments_.offset[2]
    new_y, new_c, new_site = by_site(seed=1)
    one = cal.Recalibrator("platt").fit(c, y)
    assert fitted.judge(new_c, new_y, by=new_site).after < one.judge(new_c, new_y).after - 0.02
    assert len(gain.to_pandas()) == 4
    assert json.loads(json.dumps(gain.to_dict()))["segments"][1]["segment"] == "b"
    for row in gain.rows:
        assert row.own == pytest.approx(row.frequency, abs=0.03)


def test_few_rows_are_shrunk_to_the_common_map():
    y, c, site = by_site(1600)
    keep = (site != "b") | (np.cumsum(site == "b") <= 12)
    few = fit_segments("site", c[keep], y[keep], None, site[keep])
    many = fit_segments("site", c, y, None, site)
    assert abs(few.offset[1]) < 0.7 * abs(many.offset[1])


@pytest.mark.parametrize("seed", range(3))
def test_it_is_refused_where_sites_do_not_differ(seed, tmp_path):
    y, c, site = by_site(spread=0.0, seed=seed)
    fitted = cal.Recalibrator("platt", by="site").fit(c, y, by=site)
    assert not fitted.segment_gain_.worth
    assert "There is no evidence that a map for each segment" in fitted.segment_gain_.sentence
    one = cal.Recalibrator("platt").fit(c, y)
    np.testing.assert_array_equal(fitted.transform(c, by=site), one.transform(c))
    np.testing.assert_array_equal(fitted.transform(c), one.transform(c))
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(cal.Recalibrator.load(tmp_path / "map.json").transform(c), one.transform(c))


def test_a_table_holds_the_segments_and_the_file_keeps_them(tmp_path):
    y, c, site = by_site()
    table = pd.DataFrame({"p": c, "site": site})
    fitted = cal.Recalibrator("platt", by="site").fit(table, y)
    fitted.save(tmp_path / "map.json")
    loaded = cal.Recalibrator.load(tmp_path / "map.json")
    np.testing.assert_array_equal(loaded.transform(table), fitted.transform(table))
    np.testing.assert_array_equal(loaded.transform(c, by=site), fitted.transform(table)[:, 0])
    assert loaded.by == "site"
    assert loaded.to_dict() == fitted.to_dict()
    new = np.full(len(c), "elsewhere")
    np.testing.assert_array_equal(loaded.transform(c, by=new), cal.Recalibrator("platt").fit(c, y).transform(c))
    score = loaded.inverse([0.2], segment="b")
    assert loaded.transform(score, by=["b"])[0] == pytest.approx(0.2, abs=1e-9)
    with pytest.raises(ValueError, match="each segment of site has its own map"):
        loaded.inverse([0.2])
    with pytest.raises(ValueError, match="the segments 'site' are missing"):
        loaded.transform(c)
    wrong = fitted.to_dict()
    wrong["by"]["offset"] = wrong["by"]["offset"][:2]
    with pytest.raises(ValueError, match="one offset and one slope for each"):
        cal.Recalibrator.from_dict(wrong)


def test_what_segments_refuse():
    y, c, site = by_site(200)
    with pytest.raises(ValueError, match="every row has the same value 'a' of site"):
        cal.Recalibrator("platt", by="site").fit(c, y, by=["a"] * 200)
    with pytest.raises(ValueError, match="by has 3 rows but y_true has 200"):
        cal.Recalibrator("platt", by="site").fit(c, y, by=["a", "b", "a"])
    with pytest.raises(ValueError, match="by has 2 values and there are 200 rows"):
        cal.Recalibrator("platt", by="site").fit(c, y, by=site).transform(c, by=["a", "b"])
    with pytest.raises(ValueError, match=r"create it with Recalibrator\(by='site'\)"):
        cal.Recalibrator("platt").fit(c, y, by=site)
    with pytest.raises(ValueError, match="divide numbers"):
        cal.Recalibrator("platt", by="age").fit(np.tile(c, 3), np.tile(y, 3), by=np.arange(600.0))
    three = np.column_stack([c / 2, c / 2, 1 - c])
    with pytest.raises(ValueError, match="needs predictions of two classes"):
        cal.Recalibrator("platt", by="site").fit(three, np.arange(200) % 3, by=site)


def test_the_test_of_a_segment_keeps_its_level():
    rng = np.random.default_rng(0)
    c = rng.beta(1, 4, 60)
    runs = amount(600, 2000)
    found = np.array([segment_pvalue(c, rng.random(60) < c, None, None, None) for _ in range(runs)])
    assert abs((found <= 0.05).mean() - 0.05) < 4.0 * np.sqrt(0.05 * 0.95 / runs)
    assert abs((found <= 0.5).mean() - 0.5) < 5.0 * np.sqrt(0.25 / runs)
    assert np.isnan(segment_pvalue(c[:5], rng.random(5) < c[:5], None, None, None))
    unit = np.arange(60) // 2  # rows of a unit share an outcome
    pairs = np.repeat(c[::2], 2)
    drawn = [np.repeat(rng.random(30) < c[::2], 2) for _ in range(2000)]
    plain = np.mean([segment_pvalue(pairs, y, None, None, None) <= 0.05 for y in drawn])
    paired = np.mean([segment_pvalue(pairs, y, None, None, unit) <= 0.05 for y in drawn])
    assert plain > 0.18 > 0.15 > paired
