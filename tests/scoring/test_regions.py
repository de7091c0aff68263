"""Where a synthesis is wrong, by hand and as a property."""

import numpy as np
import pytest

from fidopt.scoring.regions import QUARTERS, regions


def test_regions_by_hand():
    real = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [100.0, 100.0, 100.0, 100.0]])
    made = real + np.array([[1, -1, 0, 0], [2, 2, -4, 4], [10, 10, 10, -10]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
    found = regions(made, real, mask)
    assert found["voxels"] == {"inside": 8, "outside": 4, **dict.fromkeys(QUARTERS, 2)}
    assert found["mae"] == {"inside": 14 / 8, "outside": 10, **dict(zip(QUARTERS, (1, 0, 2, 4), strict=True))}
    assert found["bias"] == {"inside": 4 / 8, "outside": 5, **dict(zip(QUARTERS, (0, 0, 2, 0), strict=True))}
    assert found["low"]["quarter 1"] == 0
    assert found["high"]["quarter 4"] == 7
    assert found["high"]["quarter 1"] == found["low"]["quarter 2"] == 1.75


@pytest.mark.parametrize("channels", [None, 3])
def test_the_quarters_are_all_that_is_inside(channels):
    random = np.random.default_rng(3)
    shape = (7, 9, 11) if channels is None else (channels, 7, 9, 11)
    real, made = (random.integers(-1000, 3000, shape).astype(np.int16) for _ in range(2))
    mask = random.random((7, 9, 11)) > 0.4
    found = regions(made, real, mask)
    counts = [found["voxels"][name] for name in QUARTERS]
    assert sum(counts) == found["voxels"]["inside"] == mask.sum()
    total = sum(found["mae"][name] * count for name, count in zip(QUARTERS, counts, strict=True))
    assert total == pytest.approx(found["mae"]["inside"] * mask.sum(), rel=1e-12)
    error = np.abs(made.astype(float) - real.astype(float))
    assert found["mae"]["inside"] == pytest.approx(error[..., mask].mean(), rel=1e-12)


def test_a_quarter_without_a_voxel_and_an_empty_mask_are_left_out():
    # Five of eight voxels are air: the first two quarters are one value, which the first one holds.
    real = np.array([-1000.0] * 5 + [0.0, 10.0, 20.0])
    found = regions(real, real, np.ones(8))
    assert [name for name in QUARTERS if name in found["mae"]] == ["quarter 1", "quarter 3", "quarter 4"]
    assert "outside" not in found["mae"]
    assert regions(real, real, np.zeros(8)) == {}
