"""Stores that other tools wrote are read for what they say, and what is no image is refused with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, open_image, unit_of
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


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda ome, _: ome["multiscales"][0]["datasets"][0].update(path="../elsewhere/0"), "a name inside the store"),
        (lambda ome, _: ome["multiscales"][0]["datasets"][0].update(path=""), "a name inside the store"),
        (lambda ome, _: _first(ome).update(scale=[0.0, 1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=[1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=["a", 1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=["2", 1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=[1.0, 1.0, 1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=[10**400, 1.0]), "scale: expected positive numbers, one an axis"),
        (lambda ome, _: _first(ome).update(scale=None), "scale: expected positive numbers, one an axis, got None"),
        (lambda ome, _: _first(ome).update(type="rotation"), "expected scale, translation or identity, got 'rotation'"),
        (lambda _, root: root.update(konfai=3), "konfai: expected an object"),
        (lambda _, root: root.update(konfai={"attributes": [1]}), "konfai: attributes: expected an object"),
        (lambda _, root: root.update(fidopt="labels"), "fidopt: expected an object"),
        (lambda _, root: root.update(ome=[1]), "ome: expected an object"),
    ],
)
def test_a_damaged_root_is_refused_with_its_key(tmp_path: Path, change: Any, why: str):
    write_image(tmp_path / "s.ome.zarr", image_of(np.zeros((3, 4), np.uint8), Grid.of((3, 4))))
    file = tmp_path / "s.ome.zarr" / "zarr.json"
    document = json.loads(file.read_text())
    root = document["attributes"]
    change(root["ome"], root)
    file.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=why):
        open_image(tmp_path / "s.ome.zarr")


@pytest.mark.parametrize("content", ["null", "[]", "3", "", "{[", '"text"'])
def test_a_root_that_is_no_object_is_no_store(tmp_path: Path, content: str):
    (tmp_path / "s.ome.zarr").mkdir()
    (tmp_path / "s.ome.zarr" / "zarr.json").write_text(content)
    with pytest.raises(StoreError, match="is not an OME-Zarr store"):
        open_image(tmp_path / "s.ome.zarr")


def test_c_s_long_long_is_written_as_the_integer_it_is(tmp_path: Path):
    for name, kind in (("int64", np.longlong), ("uint64", np.ulonglong)):
        voxels = np.arange(12, dtype=kind).reshape(3, 4)
        write_image(tmp_path / f"{name}.ome.zarr", image_of(voxels, Grid.of((3, 4))))
        back = open_image(tmp_path / f"{name}.ome.zarr")
        assert back.dtype == name
        assert np.array_equal(back.values, voxels)


def test_a_grid_in_no_place_is_refused():
    for wrong in ({"origin": (np.nan, 0.0)}, {"origin": (np.inf, 0.0)}, {"direction": (np.nan, 0.0, 0.0, 1.0)}):
        with pytest.raises(ValueError, match="origin and direction must be finite"):
            Grid.of((3, 4), **wrong)


def _first(ome: dict[str, Any]) -> dict[str, Any]:
    return ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]


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


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ({"bioformats2raw.layout": 3}, "is a collection of images .* such as .*many.zarr/0$"),
        ({"ome": {"version": "0.5", "bioformats2raw.layout": 3}}, "is a collection of images"),
        ({"plate": {"wells": [{"path": "A/1"}]}}, "is a plate, not one image: .* such as .*many.zarr/A/1/0$"),
        ({"well": {"images": [{"path": "0"}]}}, "is a well of a plate"),
        ({"labels": ["nuclei"]}, "is a list of label maps"),
    ],
)
def test_of_a_group_of_images_one_is_asked_for(tmp_path: Path, root: dict[str, Any], why: str):
    zarr.create_group(tmp_path / "many.zarr", zarr_format=2, attributes=root)
    with pytest.raises(StoreError, match=why):
        open_image(tmp_path / "many.zarr")


@pytest.mark.parametrize("kind", ["c8", "S3", "U2", "M8[ns]", "f16"])
def test_voxels_that_are_no_numbers_of_an_image_are_refused(kind: str):
    with pytest.raises(ValueError, match=r"at most 64 bits, got .*; convert it first"):
        image_of(np.zeros((3, 4), kind), Grid.of((3, 4)))


def test_an_image_too_far_out_for_the_size_of_its_voxels_is_refused():
    assert image_of(np.zeros((1, 4)), Grid.of((1, 4), origin=(0.0, 1e300))).shape == (1, 4)
    assert grid_of(image_of(np.zeros((3, 4)), Grid.of((3, 4), origin=(1e12, 0.0)))).origin == (1e12, 0.0)
    for far in (1e16, 1e308):
        with pytest.raises(ValueError, match="voxels of size 1 along x cannot be told apart as far from zero as 1e"):
            image_of(np.zeros((3, 4)), Grid.of((3, 4), origin=(far, 0.0)))
