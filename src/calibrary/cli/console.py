"""The two consoles of the command line, and text in a form that no console takes as markup."""

from __future__ import annotations

from rich.console import Console

from calibrary.base.text import for_terminal as plain

__all__ = ["err", "out", "plain"]

out = Console(emoji=False, highlight=False)
err = Console(stderr=True, emoji=False, highlight=False)
