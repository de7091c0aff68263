"""Writing a store: whole or not at all, one task a shard, the same bytes whoever computes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import blocks
from blocks.execute import compute, rewrite_levels, write_image
from blocks.graphs import writes as graphs
from blocks.graphs.store import ShardError
from blocks.graphs.writes import Graph, Stream, Target, level_writes, writes
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, levels_of, open_image, source_of
from blocks.image.construction import StoreExistsError
from blocks.journal import Written
from blocks.storage import Layout, StoreError, create_array, tensorstore_installed


def digest(path: Path) -> str:
    """Return one digest of all the files of a store."""
    whole = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            whole.update(f"{file.relative_to(path)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def some_image(shape: tuple[int, ...] = (300, 70, 20), dtype: str = "uint16") -> xr.DataArray:
    voxels = (np.random.default_rng(5).random(shape) * 1000).astype(dtype)
    return image_of(voxels, Grid.of(shape, spacing=(0.5, 2, 3)[: len(shape)]))


def broken(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
    if block_info is not None and block_info[0]["chunk-location"][0] == 1:
        msg = "the scanner is on fire"
        raise RuntimeError(msg)
    return block


def test_a_store_is_the_same_bytes_from_memory_from_a_store_and_from_any_blocks(tmp_path: Path):
    image = some_image()
    write_image(tmp_path / "a.ome.zarr", image)
    first = digest(tmp_path / "a.ome.zarr")
    write_image(tmp_path / "b.ome.zarr", open_image(tmp_path / "a.ome.zarr"))
    write_image(tmp_path / "c.ome.zarr", image.chunk(z=70, y=33, x=-1))
    with dask.config.set(scheduler="sync"):
        write_image(tmp_path / "d.ome.zarr", open_image(tmp_path / "a.ome.zarr") + np.uint16(0))
    assert [digest(tmp_path / f"{name}.ome.zarr") for name in "bcd"] == [first] * 3


def test_a_cluster_writes_the_same_bytes(tmp_path: Path):
    from distributed import Client

    image = some_image()
    write_image(tmp_path / "a.ome.zarr", image)
    seen: list[tuple[int, int]] = []
    with Client(
        processes=False,
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path / "w"),
    ) as client:
        lazy = open_image(tmp_path / "a.ome.zarr")
        write_image(tmp_path / "b.ome.zarr", lazy, client=client, progress=lambda n, of, _: seen.append((n, of)))
        write_image(tmp_path / "c.ome.zarr", image, client=client)
        write_image(tmp_path / "d.ome.zarr", lazy + np.uint16(0), client=client)
        np.testing.assert_array_equal(compute(lazy, client=client).values, image.values)
        worse = lazy.copy(data=lazy.data.map_blocks(broken, dtype=lazy.dtype))
        with pytest.raises(
            ShardError, match=r"shard .*1/0/0.* could not be computed: RuntimeError: the scanner is on fire"
        ):
            write_image(tmp_path / "e.ome.zarr", worse, client=client)
    assert {digest(tmp_path / f"{name}.ome.zarr") for name in "abcd"} == {digest(tmp_path / "a.ome.zarr")}
    assert seen == [(n, 5) for n in range(1, 6)]


def test_every_library_writes_the_same_voxels(tmp_path: Path):
    if not tensorstore_installed():
        pytest.skip("tensorstore is not installed")
    image = some_image()
    write_image(tmp_path / "a.ome.zarr", image)
    write_image(tmp_path / "b.ome.zarr", image, library="tensorstore")
    for level in range(len(levels_of(tmp_path / "a.ome.zarr"))):
        ours, theirs = (open_image(tmp_path / f"{name}.ome.zarr", level) for name in "ab")
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_each_stored_level_is_tensorstores_downsample_of_the_one_before(tmp_path: Path):
    tensorstore = pytest.importorskip("tensorstore")
    for kind, method in (("image", "mean"), ("labels", "mode")):
        voxels = np.random.default_rng(6).integers(-3, 4, (271, 65, 3), dtype=np.int16)
        write_image(tmp_path / kind, image_of(voxels, Grid.of(voxels.shape)), kind=kind)
        finer = voxels
        for level in range(1, len(levels_of(tmp_path / kind))):
            # tensorstore keeps boxes on an axis of one voxel too: the result is that voxel.
            finer = tensorstore.downsample(tensorstore.array(finer), [2, 2, 2], method).read().result()
            np.testing.assert_array_equal(open_image(tmp_path / kind, level).values, finer)


def test_one_task_writes_one_shard_and_making_the_graph_computes_nothing(tmp_path: Path):
    def refuse(*_: object, **__: object) -> None:
        msg = "a graph was computed while it was made"
        raise AssertionError(msg)

    write_image(tmp_path / "a.ome.zarr", some_image(), levels=False)
    image = open_image(tmp_path / "a.ome.zarr")
    shapes = [(300, 70, 20), (150, 35, 10)]
    arrays = [
        create_array(str(tmp_path / str(k)), Layout.of(shape, "u2", ("z", "y", "x"))) for k, shape in enumerate(shapes)
    ]
    with dask.config.set(scheduler=refuse):
        (graph,) = writes(image + np.uint16(1), Target(arrays, "image", Written(arrays)))
    prefixes = [str(key[0]).rsplit("-", 1)[0] for key in graph.shards]
    assert prefixes == ["write-shard"] * 2 + ["downsample-shard"]
    assert not list(tmp_path.glob("[01]/c"))


def test_a_large_image_is_written_as_a_stream_or_wave_by_wave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_image(tmp_path / "a.ome.zarr", some_image((600, 300, 3)))
    lazy = open_image(tmp_path / "a.ome.zarr")
    arrays = [source_of(open_image(tmp_path / "a.ome.zarr", k)).array for k in range(3)]
    target = Target(arrays, "image", Written(arrays))
    # A stored image is copied shard by shard; the result of other tasks goes in graphs of a few shards.
    assert [type(work) for work in writes(lazy, target, wave=4)] == [Stream, Graph, Graph]
    waves = list(writes(lazy + np.uint16(0), target, wave=4))
    assert [len(wave.shards) for wave in waves] == [4, 2, 2, 1]
    assert [type(work) for work in level_writes(target, wave=1)] == [Stream, Graph]
    monkeypatch.setattr(graphs.writes, "__kwdefaults__", {"wave": 4})
    for name, image in (
        ("b", lazy),
        ("c", lazy + np.uint16(0)),
        ("d", blocks.warp(lazy, blocks.Affine.identity(3), lazy)),
    ):
        write_image(tmp_path / f"{name}.ome.zarr", image)
        assert digest(tmp_path / f"{name}.ome.zarr") == digest(tmp_path / "a.ome.zarr")


def test_progress_counts_every_shard(tmp_path: Path):
    seen: list[tuple[int, int]] = []
    write_image(tmp_path / "a.ome.zarr", some_image(), progress=lambda done, total, _: seen.append((done, total)))
    assert seen == [(n, 5) for n in range(1, 6)]
    shards = [f for f in (tmp_path / "a.ome.zarr").rglob("*") if f.is_file() and f.name != "zarr.json"]
    assert len(shards) == 5


def test_a_store_under_construction_opens_as_none_and_is_taken_up(tmp_path: Path):
    path = tmp_path / "a.ome.zarr"
    image = some_image()
    first = path / "0" / "c" / "0" / "0" / "0"

    def broken_later(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
        for _ in range(100):
            if first.exists():
                break
            time.sleep(0.1)
        time.sleep(0.1)
        return broken(block, block_info)

    worse = image.chunk(z=256).copy(data=image.chunk(z=256).data.map_blocks(broken_later, dtype=image.dtype))
    lazy_first = np.asarray(image.values[:256])
    worse = worse.copy(data=da.concatenate([da.from_array(lazy_first, chunks=-1), worse.data[256:]]))
    with pytest.raises(
        ShardError, match=r"shard .*1/0/0.* could not be computed: RuntimeError: the scanner is on fire"
    ):
        write_image(path, worse)
    assert (path / ".journal" / "header.json").is_file()
    assert not (path / "zarr.json").exists()
    with pytest.raises(StoreError, match="was not finished; run what wrote it again"):
        open_image(path)
    write_image(path, image)
    np.testing.assert_array_equal(open_image(path).values, image.values)
    assert sorted(p.name for p in path.iterdir()) == ["0", "1", "2", "3", "zarr.json"]


def test_a_writer_killed_at_its_last_step_leaves_no_finished_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    before = digest(path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed_at_the_last_rename(Path.replace))
        with pytest.raises(KeyboardInterrupt):
            write_image(path, some_image(), overwrite=True)
    assert not (path / ".journal").exists()
    with pytest.raises(StoreError, match="was not finished"):
        open_image(path)
    write_image(path, some_image())
    assert digest(path) == before


def killed_at_the_last_rename(replace: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
    def replacing(self: Path, target: Path) -> Path:
        if Path(target).parent.name == "a.ome.zarr" and Path(target).name == "zarr.json":
            raise KeyboardInterrupt
        return replace(self, target)

    return replacing


def test_a_failing_shard_is_named(tmp_path: Path):
    write_image(tmp_path / "a.ome.zarr", some_image())
    shard = tmp_path / "a.ome.zarr" / "0" / "c" / "1" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[:-50])
    with pytest.raises(
        ShardError, match=r"shard 1/0/0 of .*b\.ome\.zarr/0 could not be written: .*a\.ome\.zarr/0/c/1/0/0 is damaged"
    ):
        write_image(tmp_path / "b.ome.zarr", open_image(tmp_path / "a.ome.zarr"))
    with pytest.raises(ShardError, match=r"shard 0/0/0 of .*a\.ome\.zarr/.*/1 could not be written"):
        rewrite_levels(tmp_path / "a.ome.zarr")
    assert len(levels_of(tmp_path / "a.ome.zarr")) == 4
    assert not (tmp_path / "a.ome.zarr" / ".journal").exists()


def test_a_store_that_exists_is_kept_unless_it_may_be_replaced(tmp_path: Path):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    before = digest(path)
    with pytest.raises(StoreExistsError, match=r"the store .* exists; ask to overwrite it"):
        write_image(path, some_image(dtype="uint8"))
    assert digest(path) == before
    write_image(path, some_image((5, 5), dtype="uint8"), overwrite=True)
    assert open_image(path).shape == (5, 5)
    assert not (path / "1").exists()


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_is_no_store_is_never_replaced(tmp_path: Path, overwrite: bool):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("once")
    (tmp_path / "file").write_text("x")
    for name in ("thesis", "file"):
        with pytest.raises(StoreExistsError, match="is not a store; it is left alone"):
            write_image(tmp_path / name, some_image((5, 5)), overwrite=overwrite)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "once"
    (tmp_path / "empty").mkdir()
    write_image(tmp_path / "empty", some_image((5, 5)))


def test_an_image_cannot_replace_the_store_it_is_read_from(tmp_path: Path):
    path = tmp_path / "a.ome.zarr"
    write_image(path, some_image())
    before = digest(path)
    moved = blocks.Affine.translation((1.0, 0.0, 0.0))
    warped = blocks.warp(open_image(path), moved, some_image((9, 9, 9)))
    through = blocks.DisplacementField(
        Grid.of((3, 3, 3)), open_image(path).astype("f4").isel(z=slice(3), y=slice(3), x=slice(3)).data[None][[0, 0, 0]]
    )
    field = blocks.displacement(through, some_image((9, 9, 9)))
    lazy = open_image(path)
    for image in (lazy, lazy + np.uint16(1), open_image(path, 1).isel(z=slice(2, 9)), warped, warped * 2, field):
        with pytest.raises(ValueError, match="which it would replace"):
            write_image(path, image, overwrite=True)
    assert digest(path) == before
    write_image(path, compute(open_image(path)), overwrite=True)
    assert digest(path) == before


def test_levels_are_rewritten_from_level_zero(tmp_path: Path):
    path = tmp_path / "a.ome.zarr"
    image = some_image()
    write_image(path, image, attributes={"source": {"by": "hand"}})
    before = digest(path)
    rewrite_levels(path)
    assert digest(path) == before
    rewrite_levels(path, kind="labels")
    write_image(tmp_path / "b.ome.zarr", image, kind="labels", attributes={"source": {"by": "hand"}})
    assert kind_of(open_image(path)) == "labels"
    for level in range(1, 4):
        ours, other = open_image(path, level), open_image(tmp_path / "b.ome.zarr", level)
        np.testing.assert_array_equal(ours.values, other.values)
        assert grid_of(ours) == grid_of(other)
    rewrite_levels(path, kind="image")
    said = json.loads((path / "zarr.json").read_text())["attributes"]
    assert said["source"] == {"by": "hand"}
    assert "fidopt" not in said


@pytest.mark.parametrize("shards", [None, (66, 66)])
def test_levels_are_made_of_another_tools_chunks_of_odd_sides(tmp_path: Path, shards: tuple[int, int] | None):
    voxels = np.random.default_rng(8).integers(0, 999, (1030, 517), dtype=np.uint16)
    write_image(tmp_path / "a.ome.zarr", image_of(voxels, Grid.of(voxels.shape)))
    write_image(tmp_path / "b.ome.zarr", image_of(voxels, Grid.of(voxels.shape)), levels=False)
    codec = zarr.codecs.BloscCodec()
    zarr.create_array(
        tmp_path / "b.ome.zarr" / "0", data=voxels, chunks=(33, 33), shards=shards, compressors=codec, overwrite=True
    )
    rewrite_levels(tmp_path / "b.ome.zarr")
    for level in (0, 1, 2):
        ours, other = (open_image(tmp_path / f"{name}.ome.zarr", level) for name in "ab")
        np.testing.assert_array_equal(ours.values, other.values)


def test_levels_of_a_store_written_without_them_are_added(tmp_path: Path):
    write_image(tmp_path / "a.ome.zarr", some_image(), levels=False)
    assert len(levels_of(tmp_path / "a.ome.zarr")) == 1
    rewrite_levels(tmp_path / "a.ome.zarr")
    write_image(tmp_path / "b.ome.zarr", some_image())
    assert digest(tmp_path / "a.ome.zarr") == digest(tmp_path / "b.ome.zarr")


def test_further_attributes_are_kept_and_those_of_the_image_cannot_be_given(tmp_path: Path):
    image = some_image((5, 5))
    write_image(tmp_path / "a.ome.zarr", image, kind="labels", attributes={"fidopt": {"made": "here"}, "n": 1})
    said = json.loads((tmp_path / "a.ome.zarr" / "zarr.json").read_text())["attributes"]
    assert (said["fidopt"], said["n"]) == ({"made": "here", "kind": "labels"}, 1)
    with pytest.raises(ValueError, match="root attribute 'konfai' follows from the image"):
        write_image(tmp_path / "b.ome.zarr", image, attributes={"konfai": {}})
    assert not (tmp_path / "b.ome.zarr").exists()


def test_compute_gives_images_in_memory():
    image = some_image((5, 5)).chunk(2)
    lazy, total = image * 2, da.arange(10).sum()
    result = compute(lazy)
    assert isinstance(result.data, np.ndarray)
    assert compute(lazy, total)[1] == 45
    assert grid_of(compute(image)) == grid_of(image)


@pytest.mark.parametrize("shard", [(5, 5), (2, 5)])
def test_compute_gives_what_a_warp_makes_whole_or_in_parts(shard: tuple[int, int]):
    image = some_image((5, 5))
    warped = blocks.warp(image, blocks.Affine.identity(2), grid_of(image), shard=shard)
    result = compute(warped)
    assert (result.values == image.values).all()
    assert grid_of(result) == grid_of(image)
    # What comes back is the caller's own: writing to it leaves the image alone.
    assert not np.shares_memory(result.values, image.values)
    assert result.values.flags.writeable


def test_big_endian_voxels_are_written_as_the_machines_own(tmp_path: Path):
    image = some_image((5, 5))
    write_image(tmp_path / "a.ome.zarr", image.astype(">u2").assign_attrs(image.attrs))
    write_image(tmp_path / "b.ome.zarr", image)
    assert digest(tmp_path / "a.ome.zarr") == digest(tmp_path / "b.ome.zarr")


def test_importing_the_engine_loads_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys, blocks, blocks.grid; print([m for m in ('dask', 'xarray', 'zarr', 'numba') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert {"open_image", "write_image", "pyramid", "warp"} <= set(dir(blocks))
    with pytest.raises(AttributeError, match="no attribute 'resample'"):
        _ = blocks.resample
