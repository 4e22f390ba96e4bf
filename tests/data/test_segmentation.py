"""Segmented images: pixels as predictions, void labels, where the classes are."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal


@pytest.fixture
def images():
    """Three images of 4 x 5 pixels, four classes, some void; (y, p) with classes first."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), (3, 4, 5)).transpose(0, 3, 1, 2)
    y = rng.integers(0, 4, (3, 4, 5))
    y[rng.random(y.shape) < 0.2] = 255
    return y, p


def rows(y, p, image=None):
    """Pixel by pixel, in plain loops."""
    found = [
        (y[i, h, w], p[i, :, h, w], i)
        for i in range(y.shape[0]) for h in range(y.shape[1]) for w in range(y.shape[2])
        if y[i, h, w] != 255 and (image is None or image == i)
    ]  # fmt: skip
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])


def test_pixels_are_rows_and_void_pixels_are_left_out(images):
    pixels = cal.segmentation(*images, void=255)
    assert len(pixels) == len(pixels.image) == (images[0] != 255).sum()
    for id in ("ece", "bs", "smece"):
        assert cal.compute(id, pixels) == pytest.approx(cal.compute(id, *rows(*images)), rel=1e-12)
    assert repr(pixels) == f"Pixels({len(pixels)} of 3 images, 4 classes)"


def test_channels_may_come_last_and_volumes_are_images(images):
    y, p = images
    want = cal.compute("bs", cal.segmentation(y, p, void=255))
    assert cal.compute("bs", cal.segmentation(y, np.moveaxis(p, 1, -1), void=[255], class_axis=-1)) == want
    deep = cal.segmentation(y[:, None], p[:, :, None], void=255)  # (N, D, H, W) with (N, K, D, H, W)
    assert cal.compute("bs", deep) == want


def test_two_classes_may_have_one_map():
    rng = np.random.default_rng(1)
    c, y = rng.random((2, 6, 6)), rng.integers(0, 2, (2, 6, 6))
    assert cal.compute("ece", cal.segmentation(y, c)) == cal.compute("ece", y.ravel(), c.ravel())
    both = np.stack([1 - c, c], axis=1)
    assert cal.compute("ece", cal.segmentation(y, both)) == pytest.approx(cal.compute("ece", y.ravel(), c.ravel()))


def test_names_of_classes(images):
    y, p = images
    words = np.array(["road", "car", "sky", "tree"])[np.minimum(y, 3)]
    words[y == 255] = "void"
    named = cal.segmentation(words, p, void="void", labels=["road", "car", "sky", "tree"])
    assert cal.compute("bs", named) == cal.compute("bs", cal.segmentation(y, p, void=255))


def test_tensors_come_in(images):
    torch = pytest.importorskip("torch")
    y, p = images
    made = cal.segmentation(torch.tensor(y), torch.tensor(p), void=255)
    assert cal.compute("bs", made) == cal.compute("bs", cal.segmentation(y, p, void=255))


def test_invalid_images_are_refused(images):
    y, p = images
    with pytest.raises(ValueError, match="void=255 covers every pixel"):
        cal.segmentation(np.full_like(y, 255), p, void=255)
    at = tuple(int(i) for i in np.argwhere(y == 255)[0])
    with pytest.raises(ValueError, match=rf"y_true\[{at[0]}, {at[1]}, {at[2]}\] = 255 .* pass void=255"):
        cal.segmentation(y, p)
    with pytest.raises(ValueError, match=r"y_prob has shape \(3, 4, 4, 4\)"):
        cal.segmentation(y, p[..., :4], void=255)
    with pytest.raises(ValueError, match="y_true has 1 dimensions"):
        cal.segmentation([0, 1], [0.2, 0.3])
    with pytest.raises(ValueError, match="sums to"):
        cal.segmentation(y, p * 0.9, void=255)
    with pytest.raises(ValueError, match=r"for images use calibrary.segmentation"):
        cal.compute("ece", y, p)
