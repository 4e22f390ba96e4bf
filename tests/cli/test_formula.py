"""Formulas as ``calibrary explain`` prints them."""

from __future__ import annotations

import pytest

import calibrary as cal
from calibrary.cli.catalogue import formula_of, readable


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{1}{N K} \sum_i \sum_k (c_{ik} - y_{ik})^2", "(1/(N K)) Σ_i Σ_k (c_ik - y_ik)^2"),
        (r"\Big(\sum_b p_b\, |\bar y_b - \bar c_b|^p\Big)^{1/p}", "(Σ_b p_b |ȳ_b - c̄_b|^p)^(1/p)"),
        (r"-\frac1N \sum_i \log c_{i, y_i}", "-(1/N) Σ_i log c_(i, y_i)"),
        (r"\sqrt{\frac{a + b}{2}}", "√(((a + b)/2))"),
        (r"\{b : n_b \ge n_{\min}\}", "{b : n_b ≥ n_min}"),
        (r"\hat{\beta}", "β̂"),
    ],
)
def test_tex_becomes_a_line(tex, text):
    assert readable(tex) == text


def test_no_formula_shows_its_tex():
    shown = {entry.id: formula_of(entry) for entry in cal.catalogue.values()}
    assert sum(bool(text) for text in shown.values()) > 100
    for id, text in shown.items():
        assert not {"\\", "\n"} & set(text), (id, text)
        assert text.count("(") == text.count(")"), (id, text)


def test_the_formula_that_explain_prints(capsys):
    from calibrary.cli.main import app

    app(["explain", "cis"], standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "ideal: intercept 0, slope 1" in shown
    assert "= a + b log(c/(1-c))" in shown
    app(["--version"], standalone_mode=False)
    assert capsys.readouterr().out == f"calibrary {cal.__version__}\n"
