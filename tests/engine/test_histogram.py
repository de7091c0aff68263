"""Otsu's threshold, block by block."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows
from skimage.filters import threshold_otsu

from blocks.kernels import histogram


def _threshold(image: np.ndarray, bins: int = histogram.BINS) -> float:
    low, high = histogram.partial_range(image)
    return histogram.otsu(histogram.partial(image, low=low, high=high, bins=bins), low=low, high=high)


def _two_classes(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    body = random.random((9, 31, 23)) < 0.3 + 0.1 * seed
    return np.where(body, random.normal(100, 20, body.shape), random.normal(-50, 30, body.shape))


def test_two_values_are_parted_between_them():
    image = np.array([0, 0, 0, 10, 10], dtype=np.int16)
    threshold = _threshold(image)
    assert 0 < threshold < 10
    assert (image > threshold).sum() == 2


@pytest.mark.parametrize("seed", range(4))
def test_counts_and_threshold_are_those_of_numpy_and_scikit_image(seed):
    image = _two_classes(seed).astype(np.float32 if seed % 2 else np.float64)
    low, high = histogram.partial_range(image)
    counts = histogram.partial(image, low=low, high=high)
    assert counts.tolist() == np.histogram(image.astype(float), bins=256, range=(low, high))[0].tolist()
    assert _threshold(image) == pytest.approx(threshold_otsu(image.astype(float), nbins=256), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_is_itks_to_a_bin(seed):
    image = _two_classes(seed)
    otsu = sitk.OtsuThresholdImageFilter()
    otsu.SetNumberOfHistogramBins(256)
    otsu.Execute(sitk.GetImageFromArray(image))
    assert abs(_threshold(image) - otsu.GetThreshold()) <= np.ptp(image) / 256


def test_integers_on_the_edges_of_bins_are_counted_once():
    image = np.arange(-300, 300, dtype=np.int16)
    counts = histogram.partial(image, low=-300.0, high=299.0)
    assert counts.tolist() == np.histogram(image, bins=256)[0].tolist()


def test_blocks_add_up_to_the_whole():
    image = _two_classes(1)
    blocks = [image[:4], image[4:, :7], image[4:, 7:]]
    low, high = histogram.combine_ranges(histogram.partial_range(block) for block in blocks)
    assert (low, high) == (image.min(), image.max())
    total = sum(histogram.partial(block, low=low, high=high) for block in blocks)
    assert total.tolist() == histogram.partial(image, low=low, high=high).tolist()


def test_what_is_not_finite_is_left_out():
    image = np.array([0.0, 0.0, 1.0, np.nan, np.inf, -np.inf])
    assert histogram.partial_range(image) == (0.0, 1.0)
    assert histogram.partial(image, low=0.0, high=1.0).sum() == 3


def test_an_image_of_one_value_has_no_foreground():
    image = np.full((3, 4), 7, dtype=np.uint8)
    assert not (image > _threshold(image)).any()
    assert histogram.partial(image, low=7.0, high=7.0).sum() == 12
