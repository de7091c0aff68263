import numpy as np
import pytest

from blocks.image import kind_of
from fidopt.errors import InputError
from fidopt.images.labels import whole_labels
from fidopt.images.readers import read_image


def test_floats_close_to_whole_numbers_become_the_smallest_integers():
    labels = whole_labels(np.array([0, 2.9999998, 3.0000001, 0.99999997], np.float32), name="f")
    assert labels.dtype == np.uint8
    assert labels.tolist() == [0, 3, 3, 1]
    assert whole_labels(np.array([-1.0, 2.0]), name="f").dtype == np.int8
    assert whole_labels(np.array([614454277.0]), name="f").tolist() == [614454277]


def test_a_thousandth_is_the_limit():
    assert whole_labels(np.array([2.0009]), name="f").tolist() == [2]
    with pytest.raises(InputError, match=r"f: a label map holds whole numbers, but 1 voxels hold 2\.0011"):
        whole_labels(np.array([2.0011, 1.0]), name="f")


def test_every_wrong_value_is_listed_the_first_eight_by_name():
    values = np.array([0.5, 0.5, 1.5, np.nan, np.inf, *np.arange(10) + 0.25])
    with pytest.raises(InputError, match=r"15 voxels hold 0\.25, 0\.5, 1\.25, 1\.5, .*, \.\.\.;"):
        whole_labels(values, name="f")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint64"])
def test_integers_and_masks_keep_type_and_ids(dtype):
    labels = np.array([1, 0], dtype)
    assert whole_labels(labels, name="f") is labels


def test_the_shared_label_maps_are_rounded_refused_or_kept(shared_case):
    image = read_image(shared_case("d8_float.nii.gz"), labels=True)
    assert kind_of(image) == "labels"
    assert np.unique(image.values).tolist() == [0, 3]
    with pytest.raises(InputError, match=r"d8_half\.nii\.gz: .* voxels hold 2\.5;"):
        read_image(shared_case("d8_half.nii.gz"), labels=True)
    wide = read_image(shared_case("d8_wide.nii.gz"), labels=True)
    assert wide.dtype == np.int32
    assert np.unique(wide.values).tolist() == [0, 1, 257, 614454277]
