"""Detection family (rows 75-82 of Table 2): whether the scores of detected boxes equal their precision."""

from calibrary.base.moved import front as _front
from calibrary.base.moved import names_of as _names_of

__all__ = _names_of(__name__)
__getattr__ = _front(__name__, __all__)
