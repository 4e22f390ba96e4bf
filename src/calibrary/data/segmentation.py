"""Segmented images: every pixel is a prediction, except void pixels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.asked import checks_options
from calibrary.data.checks import Indices, as_array
from calibrary.data.predictions import Predictions, predictions


class Pixels(Predictions):
    """The pixels of images as predictions, each with the number of its image: ``metric(pixels, by="image")``."""

    image: Indices

    def parts(self, by: Any) -> list[tuple[Hashable, Predictions]]:
        """Split by any columns, or ``by="image"``."""
        return super().parts(self.image if isinstance(by, str) and by == "image" else by)

    def __repr__(self) -> str:
        return f"Pixels({self.n} of {len(np.unique(self.image))} images, {self.k} classes)"


@checks_options
def segmentation(y_true: Any, y_prob: Any, *, void: Any = None, class_axis: int = 1, labels: Any = None) -> Pixels:
    """Pixels (or voxels) of segmented images, ready for every metric.

    Parameters
    ----------
    y_true : array-like of shape (N, H, W), or (N, ...) in general
        The class of every pixel.
    y_prob : array-like of shape (N, K, H, W)
        One map of probabilities per class; or, for two classes, of the shape of ``y_true``: P(class 1).
    void : int or collection of int, optional
        Labels of pixels that do not count, such as 255.
    class_axis : int
        The axis of the classes; -1 for (N, H, W, K).
    labels : sequence, optional
        Names of the classes.

    Returns
    -------
    Pixels
        Predictions with an array ``image``, the number of the image of every pixel that counts.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> y = np.array([[[0, 1], [255, 1]], [[1, 1], [0, 255]]])
    >>> p = np.array([[[0.2, 0.7], [0.5, 0.9]], [[0.6, 0.8], [0.3, 0.5]]])
    >>> pixels = cal.segmentation(y, p, void=255)
    >>> pixels
    Pixels(6 of 2 images, 2 classes)
    >>> round(cal.brier_score(pixels), 4), pixels.image
    (0.0717, array([0, 0, 0, 1, 1, 1]))
    """
    label, probability = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    if label.ndim < 2:
        raise RefusedError(
            f"y_true has {label.ndim} dimensions: pass images as (N, H, W); plain rows need no segmentation()"
        )
    if probability.ndim == label.ndim + 1:
        probability = np.moveaxis(probability, class_axis, -1)
    if probability.shape[: label.ndim] != label.shape:
        raise RefusedError(
            f"y_prob has shape {as_array(y_prob, 'y_prob').shape} and y_true {label.shape}: pass (N, K, H, W) with "
            "(N, H, W) labels (class_axis=-1 for channels last), or P(class 1) in the shape of the labels"
        )
    counts = np.ones(label.shape, dtype=bool) if void is None else ~np.isin(label, as_array(void, "void"))
    if not counts.any():
        raise RefusedError(f"void={void!r} covers every pixel: no pixel is left to measure")
    k = 2 if probability.ndim == label.ndim else probability.shape[-1]
    if labels is None:
        _refuse_unknown(label, counts, k)
    checked = predictions(label[counts], probability[counts], labels=labels)
    pixels = Pixels(checked.y, checked.probability, classes=checked.class_names)
    pixels.image = np.nonzero(counts)[0]
    return pixels


def _refuse_unknown(label: NDArray[Any], counts: NDArray[np.bool_], k: int) -> None:
    """Raise an error for labels beyond the classes, which are most often a void label that was not named."""
    if label.dtype.kind not in "iu":
        return
    strange = np.argwhere(counts & ((label < 0) | (label >= k)))
    if len(strange):
        at = tuple(int(i) for i in strange[0])
        raise RefusedError(
            f"y_true[{', '.join(map(str, at))}] = {label[at]} is outside the {k} classes 0..{k - 1}: "
            f"pass void={label[at]} if such pixels do not count"
        )
