"""The public names of calibrary: the kind of each name, its first version, and the module that defines it.

``calibrary.__getattr__``, ``dir(calibrary)``, ``calibrary.results``, the stub files and the documentation of public
names are generated from the table ``public.txt``, which is the only list of them. A new metric needs one word there.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Name(NamedTuple):
    """One public name: ``module`` is where it is defined, ``since`` the first version that has it."""

    name: str
    module: str
    kind: str
    since: str

    @property
    def listed(self) -> bool:
        """Whether ``dir(calibrary)`` lists the name, if its package is installed."""
        return self.name in FAMILIAR or self.kind not in ("metric", "test", "helper", "result")

    @property
    def starred(self) -> bool:
        """Whether ``from calibrary import *`` imports the name."""
        return self.kind == "metric" or (self.listed and self.kind != "extra")


def _sections() -> dict[str, list[str]]:
    """The lines of each section of the table, by the first word of its heading."""
    table = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    parts = (part.splitlines() for part in table.split("\n\n")[1:])
    return {heading[1:].partition(":")[0]: lines for heading, *lines in parts}


_TABLE = _sections()


def _pairs(section: str) -> dict[str, str]:
    """The first word of each line, and the rest of it."""
    return {name: rest for name, _, rest in (line.partition(" ") for line in _TABLE.pop(section))}


#: The metrics that readers of the field know: ``familiar`` on their cards.
FAMILIAR = frozenset(" ".join(_TABLE.pop("familiar")).split())
#: Modules that cannot be imported without an optional package; ``dir`` lists them if the package is installed.
NEEDS = _pairs("needs")
#: Old names and their new names; the old names still work, with a warning.
RENAMED = _pairs("renamed")
#: Names that were accessible up to 0.2 without being listed, and the module to import each from; they give a warning.
WITHDRAWN = _pairs("withdrawn")
#: Names of functions in other packages, each with the function of calibrary (or of one of its modules) that is called
#: in the same way. ``dir`` does not list these names. All names of a metric work too, such as ``calibrary.ece``.
KNOWN = _pairs("known")
#: Names in other packages of functions that are called differently here, each with the call to use instead.
INSTEAD = _pairs("instead")


def _names() -> dict[str, Name]:
    found: dict[str, Name] = {}
    for kind, lines in _TABLE.items():
        for since, module, *names in map(str.split, lines):
            for name in names:
                if name in found:
                    raise ValueError(f"{name} occurs twice in the table of public names")
                found[name] = Name(name, f"calibrary.{module}", kind, since)
    return found


#: Every public name, including those that ``dir`` does not list.
PUBLIC = _names()


def modules_of_metrics() -> list[str]:
    """The modules that declare metrics or their tests, in the order of the table."""
    return list(dict.fromkeys(name.module for name in PUBLIC.values() if name.kind in ("metric", "test")))
