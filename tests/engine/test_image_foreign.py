"""Stores that other tools wrote are read for what they say, and what is no image is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from blocks.grid import Grid
from blocks.image import grid_of, kind_of, open_image, unit_of
from blocks.storage import StoreError

RNG = np.random.default_rng(11)


def foreign(
    path: Path, shape: tuple[int, ...], axes: str, zarr_format: int, unit_of_y: str = "micrometer"
) -> np.ndarray:
    """Write a store as another tool would: two levels, no konfai attribute, no shards."""
    voxels = RNG.integers(0, 99, shape).astype(">i2")
    group = zarr.create_group(path, zarr_format=zarr_format)
    kinds = {"t": "time", "c": "channel"}
    half = tuple(slice(None, None, 2 if a in "zyx" else 1) for a in axes)
    datasets = []
    for level, data in enumerate((voxels, voxels[half])):
        group.create_array(f"s{level}", data=data, chunks=tuple(min(n, 3) for n in data.shape))
        scale = [0.5 * 2**level if a in "zyx" else 1.0 for a in axes]
        datasets.append({"path": f"s{level}", "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    named = [{"name": a, "type": kinds.get(a, "space")} for a in axes]
    for axis in named:
        if axis["type"] == "space":
            axis["unit"] = unit_of_y if axis["name"] == "y" else "micrometer"
    outer = [{"type": "translation", "translation": [10.0 if a == "x" else 0.0 for a in axes]}]
    entry = {"axes": named, "datasets": datasets, "coordinateTransformations": outer}
    said: dict[str, object] = {"multiscales": [entry]}
    group.attrs.update({"ome": {"version": "0.5", **said}} if zarr_format == 3 else said)
    return voxels


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("shape", "axes"), [((1, 2, 5, 6, 7), "tczyx"), ((5, 6, 7), "zyx"), ((2, 6, 7), "cyx")])
def test_a_foreign_store_is_read(tmp_path: Path, zarr_format: int, shape: tuple[int, ...], axes: str):
    voxels = foreign(tmp_path / "f.zarr", shape, axes, zarr_format)
    read = open_image(tmp_path / "f.zarr")
    assert "".join(map(str, read.dims)) == axes.removeprefix("t")
    assert read.dtype == np.dtype("i2")
    np.testing.assert_array_equal(read.values, voxels[0] if axes[0] == "t" else voxels)
    n = sum(a in "zyx" for a in axes)
    expected = Grid.of(shape[-n:], spacing=[0.5] * n, origin=[10.0] + [0.0] * (n - 1))
    assert grid_of(read) == expected
    assert (unit_of(read), kind_of(read)) == ("um", "image")
    assert grid_of(open_image(tmp_path / "f.zarr", 1)).origin == expected.origin
    assert grid_of(open_image(tmp_path / "f.zarr", 1)).spacing == (1.0,) * n


def test_what_is_no_image_is_refused_with_what_to_do(tmp_path: Path):
    with pytest.raises(StoreError, match=r"there is no store at .*nowhere; check the path"):
        open_image(tmp_path / "nowhere")
    (tmp_path / "file.ome.zarr").write_text("x")
    with pytest.raises(StoreError, match="is a file; an OME-Zarr store is a folder"):
        open_image(tmp_path / "file.ome.zarr")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="no Zarr group"):
        open_image(tmp_path / "folder")
    zarr.create_group(tmp_path / "plain.zarr")
    with pytest.raises(StoreError, match=r"is not an OME-Zarr image of version 0\.4 or 0\.5"):
        open_image(tmp_path / "plain.zarr")
    foreign(tmp_path / "series.zarr", (3, 6, 7), "tyx", 2)
    with pytest.raises(StoreError, match="series of 3 points in time"):
        open_image(tmp_path / "series.zarr")
    foreign(tmp_path / "turned.zarr", (6, 7, 2), "xyc", 3)
    with pytest.raises(StoreError, match=r"has the axes x, y, c; expected"):
        open_image(tmp_path / "turned.zarr")
    foreign(tmp_path / "mixed.zarr", (6, 7), "yx", 3, unit_of_y="meter")
    with pytest.raises(StoreError, match=r"axes in different units \(meter, micrometer\)"):
        open_image(tmp_path / "mixed.zarr")
