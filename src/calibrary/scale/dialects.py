"""The SQL dialects: types, quoted names, literals and materialized steps in each database.

A database that inlines the steps of a WITH clause would compute the first step thousands of times, so the steps are
materialised there. Numbers are written with exponents, because a plain 0.5 is a decimal number in some databases; where
even 5e-1 is a decimal number, it is cast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = re.compile(r"[^\W\d]\w*( \w+)*\Z")
#: Reserved words, which must be quoted as names of columns.
_RESERVED = frozenset((
    "all", "and", "any", "array", "as", "asc", "between", "both", "by", "case", "cast", "check", "column",
    "constraint", "create", "cross", "current_date", "current_time", "current_timestamp", "current_user", "default",
    "desc", "distinct", "else", "end", "except", "exists", "false", "fetch", "for", "foreign", "from", "full",
    "grant", "group", "having", "in", "inner", "intersect", "interval", "into", "is", "join", "leading", "left",
    "like", "limit", "natural", "not", "null", "offset", "on", "or", "order", "outer", "primary", "qualify",
    "references", "right", "select", "some", "table", "then", "to", "trailing", "true", "union", "unique", "user",
    "using", "when", "where", "window", "with",
))  # fmt: skip

_OPERATORS = frozenset(("and", "at", "between", "case", "collate", "in", "interval", "is", "like", "not", "or"))


@dataclass(frozen=True)
class Dialect:
    """A database's names of the 64-bit types, and its rules of quoting."""

    name: str
    double: str = "DOUBLE"
    bigint: str = "BIGINT"
    quotes: str = '""'
    #: The keyword between AS and the parenthesis of a step.
    materialized: str = ""
    #: Function that writes a text literal; None refuses texts that databases interpret differently.
    text: Callable[[str], str] | None = None
    #: Whether literal numbers are cast, because they would be decimal numbers.
    cast_literals: bool = False
    #: The label as a double, if booleans cannot be cast to double.
    number_of_label: str = "CAST({label} AS {double})"

    def number(self, value: float) -> str:
        """A literal double."""
        written = f"{int(value)}e0" if value == int(value) else f"{value:.17e}"
        return f"CAST({written} AS {self.double})" if self.cast_literals else written

    def column(self, name: str) -> str:
        """The name of a column, quoted if necessary."""
        if _PLAIN.match(name) and name.lower() not in _RESERVED:
            return name
        if "\x00" in name:
            raise RefusedError(f"{name!r} is not a valid column name: it contains the character NUL")
        first, last = self.quotes[0], self.quotes[1]
        if first == last == "`":  # a backslash begins an escape there
            return f"`{name.replace(chr(92), chr(92) * 2).replace('`', chr(92) + '`')}`"
        return first + name.replace(last, last * 2) + last

    def expression(self, given: str) -> str:
        """A column name, quoted if necessary, or an expression of columns, unchanged.

        Words without any sign between them are a name (``true label``), unless one of them is an operator.
        """
        if _WORDS.match(given) and (" " not in given or not _OPERATORS.intersection(given.lower().split())):
            return self.column(given)
        return given

    def literal(self, value: Hashable) -> str:
        """A label as a literal of this database."""
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str):
            if "\x00" in value or (self.text is None and "\\" in value):
                raise RefusedError(
                    f"labels: {value!r} contains a character that databases interpret differently: pass dialect=, or "
                    "map it to a number"
                )
            return _doubled(value) if self.text is None else self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise RefusedError(
                f"labels: {value!r} cannot be written in SQL; use text, whole numbers, finite numbers or booleans"
            )
        return repr(value)

    def as_double(self, expression: str) -> str:
        return f"CAST({expression} AS {self.double})"

    def as_bigint(self, expression: str) -> str:
        return f"CAST({expression} AS {self.bigint})"

    def label_number(self, label: str) -> str:
        return self.number_of_label.format(label=label, double=self.double)


# -- texts ------------------------------------------------------------------------------------------


def _doubled(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _escaped(value: str) -> str:
    """A text literal for databases in which a backslash begins an escape.

    Two quotes in a row may there be the end of one text and the beginning of another.
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _escaped_and_doubled(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _of_postgres(value: str) -> str:
    """A text literal with the prefix E, in which a backslash begins an escape under any setting of the server."""
    return f"E{_escaped_and_doubled(value)}" if "\\" in value else _doubled(value)


def _by_code(value: str) -> str:
    """A text literal with backslashes as CHR(92), correct whether or not a backslash begins an escape."""
    return " || CHR(92) || ".join(_doubled(part) for part in value.split("\\"))


#: A label as a double in databases whose truth values cannot be cast to a number but have a known text.
_BY_TEXT = (
    "CASE CAST({{label}} AS {text}) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 "
    "ELSE {try_cast}(CAST({{label}} AS {text}) AS {{double}}) END"
)

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("generic"),
        Dialect("duckdb", text=_doubled),
        Dialect(
            "postgres", "DOUBLE PRECISION", materialized="MATERIALIZED ", text=_of_postgres, cast_literals=True,
            number_of_label="CAST(CASE CAST({label} AS TEXT) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
            "ELSE CAST({label} AS TEXT) END AS {double})",
        ),
        Dialect("redshift", "DOUBLE PRECISION", text=_by_code, cast_literals=True),
        Dialect("sqlite", materialized="MATERIALIZED ", text=_doubled),
        Dialect("clickhouse", "Nullable(Float64)", "Nullable(Int64)", "``", text=_escaped),
        Dialect(
            "bigquery", "FLOAT64", "INT64", "``", text=_escaped,
            number_of_label=_BY_TEXT.format(text="STRING", try_cast="SAFE_CAST"),
        ),
        Dialect(
            "snowflake", "DOUBLE", text=_escaped_and_doubled, cast_literals=True,
            number_of_label=_BY_TEXT.format(text="VARCHAR", try_cast="TRY_CAST"),
        ),
        Dialect("databricks", quotes="``", text=_escaped),
        Dialect("spark", quotes="``", text=_escaped),
        Dialect("trino", text=_doubled),
        Dialect("datafusion", text=_doubled),
        Dialect("polars", text=_doubled),
    )
}  # fmt: skip
