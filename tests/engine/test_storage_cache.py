"""Decoded chunks are kept for the next task within what running tasks leave over, and never outlive their file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.region import Region
from blocks.storage import Layout, StoredArray, StoreError, create_array, write_shard
from blocks.storage.cache import CHUNKS, ChunkCache
from blocks.storage.shards import ShardReader

SHAPE = (300, 150, 70)
CHUNK = 2 * 64**3


@pytest.fixture(autouse=True)
def nothing_is_held() -> Iterator[None]:
    CHUNKS.forget()
    yield
    CHUNKS.forget()


def stored(path: Path, voxels: np.ndarray) -> StoredArray:
    array = create_array(str(path), Layout.of(voxels.shape, voxels.dtype, ("z", "y", "x")))
    for index in array.layout.indices():
        write_shard(array, index, voxels[array.layout.region(index).slices])
    return array


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredArray, np.ndarray]:
    voxels = np.random.default_rng(0).integers(1, 300, SHAPE, dtype=np.int16)
    return stored(tmp_path_factory.mktemp("noise") / "0", voxels), voxels


def decoded_by(run) -> int:
    before = CHUNKS.decoded
    run()
    return CHUNKS.decoded - before


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_touched_is_read_and_the_chunks_around_it_are_not(noise, data: st.DataObject):
    array, voxels = noise

    def box(within: Region) -> Region:
        start = tuple(data.draw(st.integers(a, b - 1)) for a, b in zip(within.start, within.stop, strict=True))
        return Region(start, tuple(data.draw(st.integers(a + 1, b)) for a, b in zip(start, within.stop, strict=True)))

    region = box(Region.of(SHAPE))
    parts = [box(region) for _ in range(data.draw(st.integers(0, 3)))]
    with CHUNKS.room(data.draw(st.sampled_from([0, 3 * CHUNK, 100 * CHUNK]))):
        read = array.read(region, touched=parts)
    wanted = np.zeros(SHAPE, dtype=bool)
    for part in parts:
        wanted[part.align((64, 64, 64)).clip(SHAPE).slices] = True
    np.testing.assert_array_equal(read, np.where(wanted, voxels, 0)[region.slices])


def test_a_chunk_is_decoded_once_while_there_is_room(noise):
    array, voxels = noise
    left, right = Region((0, 0, 0), (300, 150, 40)), Region((0, 0, 30), (300, 150, 64))
    with CHUNKS.room(100 * CHUNK):
        assert decoded_by(lambda: array.read(left, touched=[left])) == 15
        assert decoded_by(lambda: array.read(right, touched=[right])) == 0
        np.testing.assert_array_equal(array.read(right, touched=[right]), voxels[right.slices])
    CHUNKS.forget()
    with CHUNKS.room(0):
        assert [decoded_by(lambda: array.read(left, touched=[left])) for _ in range(2)] == [15, 15]


def test_what_is_held_is_taken_before_it_is_pushed_out(noise):
    array, _ = noise
    box = Region((0, 0, 0), (300, 150, 64))
    with CHUNKS.room(10 * CHUNK):
        assert decoded_by(lambda: array.read(box, touched=[box])) == 15
        assert decoded_by(lambda: array.read(box, touched=[box])) == 5


def hold(cache: ChunkCache, number: int, shape: tuple[int, ...] = (1000,)) -> bool:
    with cache.making(("file", (), (number,)), shape, np.dtype(np.uint8)) as place:
        if place is None:
            return False
        place[...] = number
    return True


def held(cache: ChunkCache, number: int) -> np.ndarray | None:
    with cache.reading(("file", (), (number,))) as voxels:
        return voxels


def test_the_cache_holds_no_more_than_the_least_that_running_tasks_leave_over():
    cache = ChunkCache()
    assert not hold(cache, 0)
    with cache.room(10_000):
        assert all(hold(cache, number) for number in range(20))
        assert 8_000 <= cache.nbytes <= 10_000
        assert (held(cache, 19) == 19).all()
        assert held(cache, 5) is None
        with cache.room(3_500):
            assert 0 < cache.nbytes <= 3_500
            assert not hold(cache, 99, (4_000,))
            assert hold(cache, 98, (500,))
        assert hold(cache, 97)
    cache.forget()
    assert cache.nbytes == 0
    assert not hold(cache, 96)


def test_a_chunk_goes_when_all_that_were_expected_have_read_it():
    cache = ChunkCache()
    with cache.room(3_000):
        for number, again in ((1, 0), (2, 1), (3, 2)):
            with cache.making(("file", (), (number,)), (1000,), np.dtype(np.uint8), again=again) as place:
                place[...] = number
        assert held(cache, 1) is None
        assert (held(cache, 2) == 2).all()
        assert held(cache, 2) is None
        # What nobody reads again leaves its place before one that somebody does.
        assert hold(cache, 4)
        assert hold(cache, 5)
        assert (held(cache, 3) == 3).all()
        assert (held(cache, 3) == 3).all()
        assert held(cache, 3) is None


def test_threads_that_read_the_same_box_decode_a_chunk_once(noise):
    array, voxels = noise
    box = Region((0, 0, 0), (300, 150, 64))
    start, wrong = threading.Barrier(4), []

    def work() -> None:
        start.wait()
        if not np.array_equal(array.read(box, touched=[box]), voxels[box.slices]):
            wrong.append(box)

    with CHUNKS.room(100 * CHUNK):
        before = CHUNKS.decoded
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Two that look for a chunk in the same instant both decode it.
        assert CHUNKS.decoded - before < 2 * 15
    assert not wrong


def test_a_chunk_is_kept_for_the_tasks_that_read_it_again(noise):
    array, _ = noise
    box, beside = Region((0, 0, 0), (300, 150, 40)), Region((250, 0, 0), (300, 150, 40))
    with CHUNKS.room(100 * CHUNK):
        assert decoded_by(lambda: array.read(box, touched=[box], others=[beside])) == 15
        assert decoded_by(lambda: array.read(beside, touched=[beside], others=[])) == 0
        assert decoded_by(lambda: array.read(box, touched=[box], others=[])) == 15


def test_nobody_waits_for_a_chunk_that_there_was_no_memory_for(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise MemoryError

    cache = ChunkCache()
    with cache.room(10_000):
        with monkeypatch.context() as patch:
            patch.setattr("blocks.storage.cache.np.empty", refuse)
            with pytest.raises(MemoryError):
                hold(cache, 1)
        assert not cache.is_made(("file", (), (1,)))
        assert cache.nbytes == 0
        assert hold(cache, 1)
        assert (held(cache, 1) == 1).all()


def test_a_chunk_that_is_read_keeps_its_place():
    cache = ChunkCache()
    with cache.room(2_000):
        hold(cache, 1)
        with cache.reading(("file", (), (1,))) as voxels:
            for number in range(2, 9):
                hold(cache, number)
            assert (voxels == 1).all()
            cache.drop("file")
            hold(cache, 9)
            hold(cache, 10)
            hold(cache, 11)
            assert (voxels == 1).all()
        assert held(cache, 1) is None
        hold(cache, 12)
        assert (held(cache, 11) == 11).all()


def test_a_chunk_that_cannot_be_decoded_leaves_its_place(tmp_path: Path):
    voxels = np.random.default_rng(0).integers(0, 255, (64, 64, 128), dtype=np.uint8)
    array = stored(tmp_path / "0", voxels)
    file = tmp_path / "0" / "c" / "0" / "0" / "0"
    damaged = bytearray(file.read_bytes())
    damaged[4:8] = b"\0\0\0\0"
    file.write_bytes(bytes(damaged))
    box = Region.of(voxels.shape)
    with CHUNKS.room(2 * 64**3):
        for _ in range(3):
            with pytest.raises(StoreError, match="damaged"):
                array.read(box, touched=[box])
        whole = Region((0, 0, 64), (64, 64, 128))
        assert decoded_by(lambda: array.read(whole, touched=[whole])) == 1
        assert decoded_by(lambda: array.read(whole, touched=[whole])) == 0


def test_a_shard_written_again_is_not_met_in_the_cache(tmp_path: Path):
    array = stored(tmp_path / "0", np.zeros((64, 64, 64), dtype=np.uint8))
    box = Region.of((64, 64, 64))
    # Constant voxels: the files differ neither in size nor, on some file systems, in their number and time.
    for value in range(20):
        write_shard(array, (0, 0, 0), np.full((64, 64, 64), value, dtype=np.uint8))
        with CHUNKS.room(1 << 20):
            assert (array.read(box, touched=[box]) == value).all()
    other = tmp_path / "0" / "other"
    other.write_bytes((tmp_path / "0" / "c" / "0" / "0" / "0").read_bytes())
    write_shard(array, (0, 0, 0), np.random.default_rng(0).integers(0, 9, (64, 64, 64), dtype=np.uint8))
    with CHUNKS.room(1 << 20):
        assert array.read(box, touched=[box]).any()
        # As another process would put it there.
        other.replace(tmp_path / "0" / "c" / "0" / "0" / "0")
        assert (array.read(box, touched=[box]) == 19).all()


def test_a_shard_copied_over_another_with_its_time_is_not_met_in_the_cache(tmp_path: Path):
    rng = np.random.default_rng(0)
    # Noise: two shards of it are of one size.
    first, second = (rng.integers(0, 256, (64, 64, 64), dtype=np.uint8) for _ in range(2))
    arrays = [stored(tmp_path / name, voxels) for name, voxels in (("a", first), ("b", second))]
    files = [Path(array.path, "c", "0", "0", "0") for array in arrays]
    for file in files:
        os.utime(file, (0, 0))
    box = Region.of(first.shape)
    with CHUNKS.room(1 << 20):
        np.testing.assert_array_equal(arrays[0].read(box, touched=[box]), first)
        before = files[0].stat()
        files[0].write_bytes(files[1].read_bytes())
        os.utime(files[0], (0, 0))
        after = files[0].stat()
        assert (after.st_ino, after.st_mtime, after.st_size) == (before.st_ino, before.st_mtime, before.st_size)
        np.testing.assert_array_equal(arrays[0].read(box, touched=[box]), second)


def test_threads_that_share_the_cache_read_what_is_stored(noise):
    array, voxels = noise
    wrong: list[Region] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(12):
            start = tuple(int(rng.integers(0, n)) for n in SHAPE)
            box = Region(start, tuple(min(a + 80, n) for a, n in zip(start, SHAPE, strict=True)))
            with CHUNKS.room(int(rng.integers(0, 20)) * CHUNK):
                if not np.array_equal(array.read(box, touched=[box]), voxels[box.slices]):
                    wrong.append(box)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_chunks_that_are_not_stored_are_not_held(tmp_path: Path):
    array = create_array(str(tmp_path / "0"), Layout.of((64, 64, 64), np.uint8, ("z", "y", "x")))
    reader = ShardReader.of(array.path)
    assert reader is not None
    box = Region.of((64, 64, 64))
    with CHUNKS.room(1 << 30):
        assert not reader.read(box, touched=[box], cache=CHUNKS).any()
    assert CHUNKS.nbytes == 0
