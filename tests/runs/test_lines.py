from __future__ import annotations

import pytest

from fidopt.leaderboard import lines


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("dice", (0.9, 0.99)),
        ("tre", (0.5, 11.3)),
        ("ssim_t2", (-0.9, 0.9)),
        ("folds", (0.1, 0.9)),
        ("folds_body", (0.1, 0.9)),
    ],
)
def test_an_interval_stays_in_the_range_of_its_metric(metric, values):
    mean = lines._mean(metric, dict(zip("ab", values, strict=True)), 2, {})
    least, most = lines.range_of(metric)
    assert least <= mean.low <= mean.value <= mean.high <= most


def test_a_metric_without_bounds_keeps_its_interval():
    assert lines._mean("psnr", {"a": 1.0, "b": 30.0}, 2, {}).low < 0
