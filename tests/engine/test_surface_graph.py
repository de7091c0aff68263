"""Surface distances of many labels at once: the kernel's numbers, in the memory that was stated."""

import threading
import tracemalloc
from functools import partial

import numpy as np
import pytest

from blocks.execute import compute
from blocks.graphs import surface as graph
from blocks.kernels import surface
from blocks.region import Region

HD95 = (surface.hausdorff,)


def _maps(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of eleven voxels a side with labels of their own, some as long as a number, moved by some voxels."""
    index = np.meshgrid(*[np.arange(n) // 11 for n in shape], indexing="ij")
    fixed = np.asarray(sum(i * 7**k for k, i in enumerate(index)), dtype=np.int32)
    fixed[fixed == 3] = 614454277
    return fixed, np.roll(fixed, tuple(range(1, fixed.ndim + 1)), tuple(range(fixed.ndim)))


@pytest.mark.parametrize("shape", [(41, 53), (23, 31, 29)])
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_every_label_has_the_kernels_distance_whatever_the_memory(shape, memory):
    fixed, warped = _maps(shape)
    steps = (0.9, 1.7, 3.1)[: len(shape)]
    ids = [int(label) for label in np.unique(fixed)] + [99999]
    got: dict[int, tuple[float, ...] | None] = {}
    for batch in graph.measured(fixed, warped, dict.fromkeys(ids, HD95), steps=steps, memory_bytes=memory):
        got |= compute(batch)
    assert sorted(got) == sorted(ids)
    assert got[99999] is None
    for label in ids[:-1]:
        whole = surface.surface_distances(fixed, warped, label=label, steps=steps)
        assert got[label] == pytest.approx((surface.hausdorff(whole),), abs=1e-12)


def test_the_largest_labels_are_in_work_alone_and_the_rest_side_by_side():
    fixed = np.zeros((60, 60, 60), dtype=np.uint8)
    fixed[:40] = 1
    for label in range(2, 9):
        fixed[50:53, 4 * label : 4 * label + 3, :3] = label
    small = graph.label_bytes(Region((0, 0, 0), (3, 3, 3)), itemsize=1)
    asked = dict.fromkeys(range(1, 9), HD95)
    batches = list(graph.measured(fixed, fixed, asked, steps=(1, 1, 1), memory_bytes=4 * small, threads=4))
    assert [sorted(batch) for batch in batches] == [[1], [2, 3, 4, 5, 6, 7, 8]]


def test_labels_are_measured_at_the_same_time(monkeypatch):
    fixed, warped = _maps((40, 40))
    together = threading.Barrier(2, timeout=60)

    def measured(*_: object, **__: object) -> None:
        together.wait()

    monkeypatch.setattr(surface, "surface_distances", measured)
    (batch,) = graph.measured(fixed, warped, {0: HD95, 1: HD95}, steps=(1.0, 1.0), threads=2)
    assert compute(batch) == {0: None, 1: None}


def test_whatever_is_asked_of_a_label_its_distances_are_computed_once(monkeypatch):
    fixed, warped = _maps((41, 53))
    calls = []
    real = surface.surface_distances
    monkeypatch.setattr(surface, "surface_distances", lambda *a, **k: calls.append(k["label"]) or real(*a, **k))
    near = partial(surface.surface_dice, tolerance=1.5)
    (batch,) = graph.measured(fixed, warped, {0: (surface.hausdorff, near), 7: (near,)}, steps=(1.0, 2.0), threads=2)
    got = compute(batch)
    assert sorted(calls) == [0, 7]
    whole = real(fixed, warped, label=0, steps=(1.0, 2.0))
    assert got[0] == pytest.approx((surface.hausdorff(whole), near(whole)), abs=1e-12)
    assert len(got[7]) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_what_a_label_takes_is_known_before_it_runs(dtype):
    rng = np.random.default_rng(0)
    fixed = np.zeros((90, 100, 110), dtype=dtype)
    fixed[5:-5, 5:-5, 5:-5] = rng.random((80, 90, 100)) < 0.5
    (box,) = surface.boxes(fixed, fixed, ids=[1])

    def run() -> None:
        (batch,) = graph.measured(fixed, fixed[::-1], {1: HD95}, steps=(1.0, 1.0, 1.0))
        compute(batch)

    run()
    tracemalloc.start()
    run()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The maps themselves are made contiguous and are no part of a label's.
    stated = graph.label_bytes(box, itemsize=fixed.itemsize)
    assert taken - fixed.nbytes <= stated <= 2 * taken
