"""Relative errors within the fields of a table: advertisers, regions, devices."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined, warn
from calibrary.data.predictions import Predictions
from calibrary.grouping import UserGroups
from calibrary.metrics.machinery.declare import Common, metric


@metric("field_rce")
def field_relative_calibration_error(view: Predictions, *, groups: Any = None, **common: Unpack[Common]) -> float:
    r"""Mean over rows of the relative error of the predicted rate in each row's field.

    .. math:: \frac{1}{N} \sum_f N_f \frac{|\bar y_f - \bar c_f|}{\bar y_f}

    The mean is over the fields in which an event occurred; a warning gives the number of rows in the other fields.

    Parameters
    ----------
    groups : array-like of shape (N,)
        The field of every row: any hashable value.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.6]
    >>> round(cal.field_relative_calibration_error(y, c, groups=["a", "a", "b", "b"]), 4)
    0.25
    """
    if groups is None:
        raise RefusedError("groups is missing: pass the field of every row")
    fields = UserGroups(groups).groups(view)
    some = fields.label > 0.0
    if not some.any():
        return undefined("no field has an event, so the relative error is undefined")
    if not some.all():
        left = float(fields.weight[~some].sum())
        warn(f"{int((~some).sum())} of {len(fields)} fields ({left:g} rows) have no event and count as having no error")
    return float(np.sum(np.abs(fields.residual[some]) / fields.label[some]) / view.total)
