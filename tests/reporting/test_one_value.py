"""Thirty pages as opened: everything that a page calls by one name has one value.

Numbers are read from what a reader sees: sentences, tables, captions, the text of pictures and what the script writes
on opening. Two numbers of one name agree if they could be one number written with different digits.
"""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
from each import amount

METRICS = ["ece", "smece", "bs", "nll", "cis", "eo", "esce", "ecce_mad", "auroc", "spiegelhalter", "ace"]
NUMBER = r"(-?[\d,]*\.?\d+(?:e-?\d+)?%?)"
#: What sentences, captions and pictures call a number, with the number after it; the first that fits names it.
SPOKEN = [
    ("smece", r"smooth ECE(?: \(smece\))?(?: is| of|:)? "),
    ("esce", r"\(?ESCE(?: is| of)? "),
    ("ece", r"(?:expected calibration error|(?<![\w-])ECE)(?: \(ece\))?(?: is| of|:)? "),
    ("ece", r"bring the ECE from "),
    ("cis.slope", r"Cox slope(?: is)? "),
    ("bs", r"Brier score(?: is)? "),
    ("tolerance", r"(?:tolerance is|[Cc]alibrated within|but within|^Within|ECE is within) "),
    ("mean prediction", r"mean (?:prediction|confidence)(?: is| of)? "),
    ("observed", r"(?:observed frequency|observed|accuracy|right) "),
]  # fmt: skip
#: Words before such a number that make it another one: of recalibrated rows, of a part of the rows, of other rows.
OTHERS = re.compile(
    r"after |tenth|segment|from -?[\d.]+ to|cases|[a-z]+ = |class(es:?)? |in \d+ |period|Remedy|\S {2,}", re.I
)
#: Columns of tables and what their numbers are called, for the row of all predictions as they were stated.
STATED = {"ECE": "ece", "log loss": "nll"}


class Reader(HTMLParser):
    """The text of the page in blocks: (kind, attributes of the row, heading of the column, text)."""

    BLOCKS = ("p", "li", "td", "th", "figcaption", "text", "dt", "dd", "h1", "h2")

    def __init__(self, page):
        super().__init__()
        self.blocks, self.hidden, self.row, self.open = [], 0, {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag in ("template", "script", "style"):
            self.hidden += 1
        if tag == "tr":
            self.row = dict(attrs)
        if tag in self.BLOCKS and not self.hidden:
            self.open.append([tag, self.row if tag == "td" else {}, dict(attrs).get("data-label", ""), ""])

    def handle_endtag(self, tag):
        if tag in ("template", "script", "style"):
            self.hidden -= 1
        if tag in self.BLOCKS and not self.hidden and self.open and self.open[-1][0] == tag:
            self.blocks.append(tuple(self.open.pop()))

    def handle_data(self, text):
        if self.open and not self.hidden:
            self.open[-1][-1] += text


def value_of(text):
    """A number as written: its value, and half a unit of its last digit."""
    digits = text.rstrip("%").replace(",", "").replace("\u2007", "").replace("\u2008", "").strip()
    mantissa, _, power = digits.partition("e")
    scale = 10.0 ** float(power or 0) * (0.01 if "%" in text else 1.0)
    return float(mantissa) * scale, 0.5 * 10.0 ** -len(mantissa.partition(".")[2]) * scale


def numbers_of(report, page=None):
    """Every (name, text of the number, where) of a page as opened."""
    found, reader = [], Reader(report.to_html() if page is None else page)
    cells = [b for b in reader.blocks if b[0] == "td" and "data-id" in b[1]]
    for _, row, column, text in cells:
        id = row["data-id"]
        if column in ("value", "if calibrated") and text and text[0] not in "u∞":
            found.append((id if column == "value" else f"{id} {column}", text, f"table, {column}"))
        if column == "interval" and " to " in text:
            low, high = text.split(" to ")
            found += [(f"{id} low", low, "table"), (f"{id} high", high, "table")]
    for kind, _, _, text in reader.blocks:
        if kind in ("td", "th", "dt", "dd"):
            continue
        for sentence in re.split(r"(?<=[a-z\d)%])[.;] ", text):
            taken = 0
            for name, words in SPOKEN:
                for m in re.finditer(words + NUMBER, sentence):
                    if m.start() < taken or OTHERS.search(sentence[: m.start()]):
                        continue
                    taken = m.end() if name in ("smece", "esce") else taken
                    found.append((name, m[1].rstrip(","), sentence))
                    between = re.match(rf" \({NUMBER} to {NUMBER}\)", sentence[m.end() :])
                    if between:
                        found += [(f"{name} low", between[1], sentence), (f"{name} high", between[2], sentence)]
        if kind == "p":
            whole = re.search(rf"true (?:error|value) lies between {NUMBER} and {NUMBER} ", text)
            if whole and text.startswith(report.headline[:20]):
                found += [(f"{report.primary} {end}", whole[i], text) for i, end in ((1, "low"), (2, "high"))]
            for m in re.finditer(rf"calibrated model would still show about {NUMBER}\.?(?: |$)", text):
                found.append((f"{report.primary} if calibrated", m[1].rstrip("."), text))
            for m in re.finditer(rf"^{NUMBER} (?:rows|detections)", text):
                found.append(("rows", m[1], text))
    if page is None:
        found += shown_by_the_script(report) + tables_of(report)
    return found


def shown_by_the_script(report):
    """What the live diagram says on opening: the numbers of the page's own bins, if it opens with these."""
    live = report.live
    if live is None or live.shown is None or live.metric != "ECE":
        return []
    if (live.binning, live.n_bins) != (live.own_binning, live.own_bins):
        return []
    return [("ece", cal.base.numbers.number(live.shown.value), "live"),
            ("ece if calibrated", cal.base.numbers.number(live.shown.mean), "live")]  # fmt: skip


def tables_of(report):
    """The row "not recalibrated" of the table of maps, and the numbers of rows in the facts and in the provenance."""
    found = [("rows", f"{report.facts['rows']}", "facts"), ("rows", f"{report.data['rows']}", "data")]
    for section in report.sections:
        for table in section.tables if section.key == "help" else ():
            found += [
                (STATED[head], cal.base.numbers.number(value), "maps")
                for head, value in zip(table.head, table.rows[0], strict=True)
                if head in STATED
            ]
    return found


def two_values(found):
    """Names with two numbers that no one number could be."""
    clashes = []
    for name in dict.fromkeys(name for name, _, _ in found):
        mine = [(*value_of(text), where) for n, text, where in found if n == name]
        low = max(mine, key=lambda v: v[0] - v[1])
        high = min(mine, key=lambda v: v[0] + v[1])
        if low[0] - low[1] > high[0] + high[1] + 1e-12:
            clashes.append((name, low, high))
    return clashes


# -- the pages ------------------------------------------------------------------------------------------


def binary(n=400, slope=1.0, shift=0.0, law=(0.8, 0.8), digits=None, shares=False):
    rng = np.random.default_rng(n)
    p = rng.beta(*law, n).clip(1e-4, 1 - 1e-4)
    q = expit(slope * logit(p) + shift)
    return q if shares else (rng.random(n) < q).astype(int), p if digits is None else p.round(digits)


def classes(n=400, k=4, sure=1.0, pull=0.0):
    rng = np.random.default_rng(k)
    z = rng.normal(0, 1.3, (n, k))
    q, s = np.exp(z), np.exp(sure * z + pull * (np.arange(k) == 1))
    q, s = q / q.sum(axis=1, keepdims=True), s / s.sum(axis=1, keepdims=True)
    return (q.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, k - 1), s


def detections(n=120):
    rng = np.random.default_rng(n)
    score = rng.uniform(0.2, 0.95, 4 * n)
    hit = (rng.random(4 * n) < score - 0.15).astype(int)
    return (cal.matched_detections(hit, score, image=np.repeat(np.arange(n), 4)),)


def column(values, n=400, seed=5):
    return np.random.default_rng(seed).choice(values, n)


rare = partial(binary, n=2000, shift=0.9, law=(1, 60))
PAGES = {
    "calibrated": (binary, {}),
    "extreme": (partial(binary, slope=0.5), {}),
    "not extreme enough": (partial(binary, slope=2.0), {}),
    "too low": (partial(binary, shift=0.8), {}),
    "too high": (partial(binary, shift=-0.8), {}),
    "both": (partial(binary, slope=0.6, shift=0.5), {}),
    "thirty rows": (partial(binary, n=30), {}),
    "rare": (rare, {}),
    "rare with segments": (rare, {"by": {"channel": column(["online", "branch"], 2000)}}),
    "rare and calibrated": (partial(rare, shift=0.0), {}),
    "nearly certain": (partial(binary, law=(30, 1), slope=0.7), {}),
    "rounded": (partial(binary, digits=1), {}),
    "two segments": (partial(binary, slope=0.7), {"by": {"ward": column(["A", "B", ""]), "age": np.arange(400.0)}}),
    "twelve codes": (partial(binary, n=2400, shift=0.3), {"by": {"site": column(np.arange(101, 113), 2400)}}),
    "ten bins": (partial(binary, slope=0.6), {"n_bins": 10}),
    "bins of equal mass": (partial(binary, slope=0.6), {"options": {"binning": "mass"}}),
    "rare with five bins": (rare, {"n_bins": 5}),
    "level of 90%": (partial(binary, slope=0.6), {"confidence_level": 0.9}),
    "tolerance of 0.2": (partial(binary, slope=0.6), {"tolerance": 0.2}),
    "headline of the smooth ECE": (partial(binary, slope=0.6), {"primary": "smece"}),
    "headline of the Brier score": (partial(binary, slope=0.6), {"primary": "bs"}),
    "without draws": (partial(binary, slope=0.6), {"n_resamples": 0}),
    "units": (partial(binary, slope=0.6), {"units": np.arange(400) // 4}),
    "over time": (partial(binary, slope=0.6), {"time": np.arange(400)}),
    "thresholds": (partial(binary, slope=0.6), {"thresholds": [0.3]}),
    "weights": (partial(binary, slope=0.6), {"sample_weight": column([1, 2, 3])}),
    "four classes": (partial(classes, sure=1.6), {}),
    "ten classes, one pulled": (partial(classes, n=900, k=10, sure=1.2, pull=0.8), {}),
    "class-wise": (partial(classes, sure=1.6), {"lens": "class-wise"}),
    "detector": (detections, {"metrics": ["d_ece", "ece", "bs", "cis"]}),
}


def page_of(name):
    make, asked = PAGES[name]
    asked = {"metrics": METRICS, "n_resamples": 39, **asked}
    options = asked.pop("options", {})
    return cal.report(*make(), **asked, **options)


@pytest.mark.parametrize("name", list(PAGES)[:: amount(5, 1)])
def test_one_name_has_one_value(name):
    report = page_of(name)
    found = numbers_of(report)
    names = {n for n, _, _ in found}
    # the reader has read the page: the number of the headline stands in at least two places
    assert sum(n == report.primary for n, _, _ in found) >= 2, names
    assert not two_values(found)


def test_there_are_thirty_pages():
    assert len(PAGES) == 30


@pytest.mark.usefixtures("outlined")
def test_a_second_value_is_found():
    report = page_of("thirty rows")
    page = report.to_html().replace("</main>", "<p>ECE 0.5 with other bins.</p></main>")
    assert [name for name, _, _ in two_values(numbers_of(report, page))] == ["ece"]
