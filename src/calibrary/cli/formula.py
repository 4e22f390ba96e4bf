"""Formulas for a terminal: the documentation's TeX as one line of Unicode text."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = {
    "sum": "Σ", "prod": "Π", "int": "∫", "le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "cdot": "·", "infty": "∞",
    "sim": "~", "to": "→", "top": "T", "ell": "ℓ", "dots": "...", "lfloor": "⌊", "rfloor": "⌋", "alpha": "α",
    "beta": "β", "gamma": "γ", "epsilon": "ε", "varepsilon": "ε", "lambda": "λ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "varphi": "φ", "psi": "ψ", "log": "log", "max": "max", "min": "min", "arg": "arg ", "quad": "  ",
    "qquad": "  ", ",": " ", ";": " ", " ": " ", "!": "", "|": "‖", "{": "{", "}": "}", "#": "#", "\\": "; ",
    "Big": "", "big": "", "left": "", "right": "",
}  # fmt: skip
#: Accents, as characters that combine with the letter before them.
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "overline": "\u0304"}
_FONTS = ("text", "mathrm", "mathcal", "operatorname")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_&]|\s+|[^\\{}^_&\s]")
#: Text that needs no brackets as an index, a power or a part of a fraction.
_SINGLE = re.compile(r"[\w.\u0300-\u036f]+|\(.*\)|⌊.*⌋")


def readable(tex: str) -> str:
    r"""One line for a formula in TeX.

    >>> readable(r"\frac{1}{N} \sum_i |\bar y_i - c_i|^2")
    '(1/N) Σ_i |ȳ_i - c_i|^2'
    """
    tokens = _TOKEN.findall(re.sub(r"\\(begin|end)\{\w+\}", " ", tex))
    return re.sub(r"\s+", " ", _sequence(tokens)).strip()


def _sequence(tokens: list[str]) -> str:
    """The text up to the next closing brace, or to the end."""
    done = ""
    while tokens and tokens[0] != "}":
        done += _piece(tokens)
    return done


def _piece(tokens: list[str]) -> str:
    """The next symbol with its arguments."""
    token = tokens.pop(0)
    if token == "{":
        inner = _sequence(tokens)
        tokens[:1] = []
        return inner
    if token in "^_":
        return token + _bracketed(_argument(tokens))
    if token == "&":
        return " "
    if not token.startswith("\\"):
        return token
    name = token[1:]
    if name in ("frac", "tfrac"):
        return f"({_bracketed(_argument(tokens))}/{_bracketed(_argument(tokens))})"
    if name == "sqrt":
        return f"√({_argument(tokens)})"
    if name in _ACCENTS:
        of = _argument(tokens)
        return unicodedata.normalize("NFC", of + _ACCENTS[name]) if len(of) == 1 else f"mean({of})"
    if name in _FONTS:
        return _argument(tokens)
    return _SIGNS.get(name, name)


def _argument(tokens: list[str]) -> str:
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    return _piece(tokens) if tokens else ""


def _bracketed(text: str) -> str:
    text = text.strip()
    return text if _SINGLE.fullmatch(text) else f"({text})"
