"""The review's Table 2 and Table 1, in its columns and order, with our columns added."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from calibrary.base.errors import extra
from calibrary.base.markup import html_table
from calibrary.metrics.machinery.declare import ENTRIES, Entry
from calibrary.metrics.machinery.table2 import TABLE_2, Table2Row

__all__ = ["ReviewTable", "notation", "table2"]


@dataclass(frozen=True)
class ReviewTable:
    """A table of text: ``columns`` and ``rows``; it prints as Markdown and converts to other formats."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return html_table(self.columns, [list(row) for row in self.rows])

    @property
    def records(self) -> list[dict[str, str]]:
        """One dictionary for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        with extra("pandas", "a data frame"):
            import pandas as pd
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def to_markdown(self) -> str:
        """The table as Markdown."""
        head = "| " + " | ".join(self.columns) + " |"
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join([head, "|" + " --- |" * len(self.columns), *lines])

    def to_csv(self) -> str:
        """The table as CSV with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return text.getvalue()

    def to_json(self) -> str:
        """The table as a JSON list of records."""
        return json.dumps(self.records, ensure_ascii=False, indent=2)


_SHOWN = {"yes": "Yes", "no": "No", "u": "U"}


def table2() -> ReviewTable:
    """The review's Table 2: its columns in its order, then calibrary's name for the metric and our corrections.

    Names, pros and cons are in our words; ranges, propriety, tests and references are as printed there. The columns
    after these are ours: the id, the range, propriety and test of our implementation, and the corrections.

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.catalogue.table2()
    >>> len(found), found.columns[:5]
    (82, ('Metric name', 'Type', 'Range', 'Proper', 'HT'))
    """
    columns = (
        "Metric name", "Type", "Range", "Proper", "HT", "Pros", "Cons", "Ref",
        "row", "section", "id", "our range", "our propriety", "our test", "stated differently",
    )  # fmt: skip
    return ReviewTable(columns, tuple(_row(number, row) for number, row in TABLE_2.items()))


def _row(number: int, row: Table2Row) -> tuple[str, ...]:
    entry = ENTRIES[row.id]
    low, high = (f"{end:g}" for end in entry.range)
    return (
        row.name, row.type, row.range, _SHOWN.get(row.proper, row.proper), _SHOWN.get(row.test, row.test),
        "; ".join(row.pros), "; ".join(row.cons), " ".join(f"[{cite}]" for cite in row.cites),
        str(number), row.section, row.id, f"[{low}, {high}]", entry.proper, _tested(entry),
        "; ".join(f"{c.fact}: {c.ours}" for c in entry.corrections),
    )  # fmt: skip


def _tested(entry: Entry) -> str:
    return "own distribution" if entry.has_test else "labels redrawn" if entry.null else "none"


#: Table 1 of the review, symbol and meaning; the last lines are symbols that our formulas add.
_REVIEW, _OURS = "the review, Table 1", "calibrary"
_SYMBOLS = r"""
a_b | accuracy of a soft bin
B | number of bins
b | index of a bin
c_i | confidence of data point i
\bar c_b | mean confidence in bin b
\tilde c(c) | kernel density estimate of the confidence
G | number of grid points
g | index of a grid point
H | number of proximity bins
h | bandwidth of a kernel, or index of a proximity bin
h(c) | logit function
h_{ij} | error term of a pair
I[\cdot] | indicator function
i | index of a data point
j | second index of a class or data point
K | number of classes
k | index of a class, or another index
k(\cdot) | kernel function
k^* | largest parameter of the surrogate interval calibration error
L(\cdot) | loss function
M | number of Monte Carlo runs
m | cluster size of a reliability map, or index of a Monte Carlo run
N | number of data points
n_b | number of data points in bin b
p | parameter of the p-norm
p_b | share of the data points in bin b
Q | number of partitions of the data
q | index of a partition
R_{bm} | random sample from the distribution of labels
R(\bar c) | estimate of the reliability map
s | number of data points in a sliding bin
(s) | sampled value
s_b | size of a soft bin
s(c, \bar y) | scoring function
T | transpose
u(c) | membership function of a bin
V | number of detections
v | index of a detection
w | width of a bin
w_0 | biases of a model
w_1 | weights of a model
w_k | importance of class k
y_i | class label of data point i
x | input data
\bar y | true proportions of the classes in the data
\hat y | calibration map
\bar y_b | mean accuracy in bin b
Z | normalizing constant
\alpha | exponent of alpha scores, or another exponent
\gamma | focus parameter
\delta_{i,j} | Kronecker delta
\varepsilon | small value
\Theta | set of eligible bins
\mu | mean
\rho(\cdot) | inverse logit function
\sigma | standard deviation
\tau | temperature
\# | number of elements of a set
"""
_ADDED = r"""
w_i | weight of data point i: a row of weight 2 counts as the row repeated; 1 if no weights are given
W | sum of the weights, N if no weights are given
c_{ik} | confidence of data point i in class k
c_{y_i} | confidence in the class that occurred
\pi_k | share of class k among the labels
t | threshold of a decision, or cost proportion
\hat y(c) | calibration map estimated from the data, at confidence c
"""


def notation() -> ReviewTable:
    """The symbols in the formulas: Table 1 of the review in its order, then the symbols that calibrary adds.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.notation().rows[1]
    ('B', 'number of bins', 'the review, Table 1')
    """
    rows = [
        (*map(str.strip, line.split(" | ")), source)
        for text, source in ((_SYMBOLS, _REVIEW), (_ADDED, _OURS))
        for line in text.strip().splitlines()
    ]
    return ReviewTable(("symbol", "meaning", "source"), tuple(rows))
