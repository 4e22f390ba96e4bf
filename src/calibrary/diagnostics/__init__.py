"""Tables and curves instead of single numbers: reliability bins, cumulative differences, decompositions, maps."""

from calibrary.base.moved import front as _front
from calibrary.base.moved import names_of as _names_of

__all__ = _names_of(__name__)
__getattr__ = _front(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
