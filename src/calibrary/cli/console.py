"""The two consoles of the command line, text in a form that no console takes as markup, and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from calibrary.base.text import for_terminal as plain

__all__ = ["err", "out", "plain", "table_of"]

out = Console(emoji=False, highlight=False)
err = Console(stderr=True, emoji=False, highlight=False)


def table_of(
    heads: Iterable[str], rows: Iterable[Iterable[Any]], words: Collection[int] | None = None, **options: Any
) -> Table:
    """A table without lines; columns of numbers are flush right if the places of the columns of ``words`` are given."""
    table = Table(box=None, pad_edge=False, **options)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if words is None or place in words else "right")
    for row in rows:
        table.add_row(*map(plain, row))
    return table
