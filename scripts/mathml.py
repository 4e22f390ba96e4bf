"""Formulas as MathML when the site is built, so that pages need neither a script nor a network (a hook of mkdocs)."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\([(\[])(.*?)\\[)\]]\s*</\1>', re.DOTALL)


_SPACE = "http://www.w3.org/1998/Math/MathML"
_BELOW = {f"{{{_SPACE}}}msub": f"{{{_SPACE}}}munder", f"{{{_SPACE}}}msubsup": f"{{{_SPACE}}}munderover"}

#: What the converter knows by another name.
_NAMES = {r"\lVert": r"\|", r"\rVert": r"\|", r"\lvert": "|", r"\rvert": "|", r"\arg": r"\mathrm{arg}"}


def mathml(latex: str, display: bool) -> str:
    """One formula."""
    text = latex.strip()
    for name, known in _NAMES.items():
        text = text.replace(name, known)
    text = _stretched(text)
    text = re.sub(r"\\operatorname\*?\{([^}]*)\}", r"\\mathrm{\1}", text)
    made = convert(text, display="block" if display else "inline")
    return _limits(made) if display else made


def _limits(made: str) -> str:
    """Indexes of displayed sums stand below and above, also inside brackets."""
    ET.register_namespace("", _SPACE)
    root = ET.fromstring(made)
    for part in root.iter():
        if part.tag in _BELOW and len(part) and part[0].text in ("\u2211", "\u220f"):
            part.tag = _BELOW[part.tag]
    return ET.tostring(root, encoding="unicode")


def _stretched(latex: str) -> str:
    r"""Brackets that were made large by hand (``\Big(``) as brackets that fit what they hold; bars open, then close."""
    opened: list[str] = []

    def fitted(found: re.Match[str]) -> str:
        sign = found[1]
        if sign in "([" or (sign in ("|", r"\|") and sign not in opened):
            opened.append(sign)
            return rf"\left{sign}"
        if opened:
            opened.pop()
        return rf"\right{sign}"

    fitting = re.sub(r"\\[bB]igg?[lr]?\s*(\\\||[()\[\]|])", fitted, latex)
    return latex if opened or fitting.count(r"\left") != fitting.count(r"\right") else fitting


def replaced(page: str) -> str:
    """The page with every formula as MathML."""
    return _FORMULA.sub(lambda m: mathml(html.unescape(m[3]), m[2] == "["), page)


def on_page_content(page_html: str, **kwargs: Any) -> str:
    return replaced(page_html)
