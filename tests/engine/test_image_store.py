"""A store reads back as the image it was written from, here and in the field's own readers."""

from __future__ import annotations

import json
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray as xr
import zarr
from scipy.spatial.transform import Rotation

from blocks.execute import rewrite_levels, write_image
from blocks.grid import Grid
from blocks.image import grid_of, image_of, levels_of, open_image, source_of, unit_of
from blocks.image.construction import StoreExistsError, construction
from blocks.image.metadata import number_text, parse_numbers
from blocks.region import Region
from blocks.storage import StoreError, tensorstore_installed

RNG = np.random.default_rng(7)
DIRECTIONS = {
    2: (0.8, -0.6, 0.6, 0.8),
    3: tuple(float(v) for v in Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_matrix().ravel()),
}


def some_image(
    shape: tuple[int, ...], dtype: str = "uint8", channels: int | None = None, unit: str = "mm"
) -> xr.DataArray:
    n = len(shape)
    grid = Grid.of(shape, spacing=RNG.random(n) + 0.1, origin=RNG.standard_normal(n) * 1000, direction=DIRECTIONS[n])
    voxels = RNG.random(shape if channels is None else (channels, *shape)) * 200
    return image_of(voxels.astype(dtype), grid, unit=unit)


@pytest.mark.parametrize("unit", ["mm", "um", "px"])
@pytest.mark.parametrize(("shape", "channels"), [((70, 65, 5), None), ((9, 1, 7), 2), ((513, 30), 3), ((1, 1), None)])
def test_an_image_reads_back_to_the_last_digit(tmp_path: Path, shape: tuple[int, ...], channels: int | None, unit: str):
    image = some_image(shape, "int16", channels, unit)
    write_image(tmp_path / "i.ome.zarr", image)
    read = open_image(tmp_path / "i.ome.zarr")
    assert read.dims == image.dims
    assert read.dtype == image.dtype
    assert grid_of(read) == grid_of(image)
    assert unit_of(read) == unit
    np.testing.assert_array_equal(read.values, image.values)
    assert all(read.coords[d].equals(image.coords[d]) for d in image.coords)


def test_the_root_says_what_the_protocol_says(tmp_path: Path):
    grid = Grid.of((3, 130, 5), spacing=(1, 2, 0.5), origin=(-10.25, 20, 30), direction=(0, 1, 0, 1, 0, 0, 0, 0, -1))
    write_image(tmp_path / "i.ome.zarr", image_of(np.zeros((2, 3, 130, 5), "u1"), grid), kind="labels")
    root = json.loads((tmp_path / "i.ome.zarr" / "zarr.json").read_text())
    assert (root["zarr_format"], root["node_type"]) == (3, "group")
    assert "consolidated_metadata" not in root
    said = root["attributes"]
    assert said["fidopt"] == {"kind": "labels"}
    assert said["konfai"] == {
        "attributes": {
            "Origin_0": "[-10.25  20.    30.  ]",
            "Spacing_0": "[1.  2.  0.5]",
            "Direction_0": "[ 0.  1.  0.  1.  0.  0.  0.  0. -1.]",
        }
    }
    assert said["ome"]["version"] == "0.5"
    (entry,) = said["ome"]["multiscales"]
    space = [{"name": d, "type": "space", "unit": "millimeter"} for d in "zyx"]
    assert entry["axes"] == [{"name": "c", "type": "channel"}, *space]
    steps = {d["path"]: d["coordinateTransformations"] for d in entry["datasets"]}
    assert steps == {
        "0": [
            {"type": "scale", "scale": [1, 0.5, 2, 1]},
            {"type": "translation", "translation": [0, 30, 20, -10.25]},
        ],
        "1": [
            {"type": "scale", "scale": [1, 1, 4, 2]},
            {"type": "translation", "translation": [0, 30.25, 21, -9.75]},
        ],
        "2": [
            {"type": "scale", "scale": [1, 2, 8, 4]},
            {"type": "translation", "translation": [0, 30.75, 23, -8.75]},
        ],
    }


def test_an_axis_of_one_voxel_keeps_its_scale(tmp_path: Path):
    image = image_of(np.zeros((1, 200, 2), "u1"), Grid.of((1, 200, 2), spacing=(1, 1, 7), origin=(1, 2, 3)))
    write_image(tmp_path / "i.ome.zarr", image)
    levels = levels_of(tmp_path / "i.ome.zarr")
    assert [level.shape for level in levels] == [(1, 200, 2), (1, 100, 1), (1, 50, 1)]
    assert [level.grid.spacing for level in levels] == [(1, 1, 7), (2, 2, 7), (2, 4, 7)]
    assert levels[2].grid.origin == (1.5, 3.5, 3)


def test_a_unit_of_pixels_is_not_stated(tmp_path: Path):
    write_image(tmp_path / "i.ome.zarr", some_image((3, 3), unit="px"))
    root = json.loads((tmp_path / "i.ome.zarr" / "zarr.json").read_text())
    axes = root["attributes"]["ome"]["multiscales"][0]["axes"]
    assert axes == [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    assert "fidopt" not in root["attributes"]


def test_numbers_are_written_as_konfai_writes_them():
    attribute = pytest.importorskip("konfai.utils.dataset.attribute")
    for size in [2, 3, 9] * 60:
        values = RNG.standard_normal(size) * 10.0 ** RNG.integers(-9, 9, size)
        text = number_text(values)
        assert text == attribute._attribute_text(values)
        assert parse_numbers(text) == tuple(values)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "channels"), [((70, 31, 20), None), ((40, 30), 3)])
def test_konfai_reads_the_same_voxels_and_geometry(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], channels: int | None
):
    files = pytest.importorskip("konfai.utils.dataset.ome_zarr_file")
    image = some_image(shape, dtype, channels)
    write_image(tmp_path / "case.ome.zarr", image)
    voxels, said = files.OmeZarrFile(str(tmp_path), True).file_to_data("", "case")
    assert voxels.dtype == image.dtype
    np.testing.assert_array_equal(voxels, image.values if channels else image.values[None])
    grid = grid_of(image)
    assert tuple(said.get_np_array("Spacing")) == grid.spacing
    assert tuple(said.get_np_array("Origin")) == grid.origin
    assert tuple(said.get_np_array("Direction")) == grid.direction


def test_konfai_takes_micrometres_for_what_they_are(tmp_path: Path):
    files = pytest.importorskip("konfai.utils.dataset.ome_zarr_file")
    image = some_image((5, 6, 7), unit="um")
    write_image(tmp_path / "case.ome.zarr", image)
    _, said = files.OmeZarrFile(str(tmp_path), True).file_to_data("", "case")
    np.testing.assert_allclose(said.get_np_array("Spacing"), np.array(grid_of(image).spacing) * 1e-3)


def test_a_store_written_by_konfai_is_read(tmp_path: Path):
    stores = pytest.importorskip("konfai.utils.ome_zarr")
    attributes = pytest.importorskip("konfai.utils.dataset.attribute").Attribute()
    grid = Grid.of((5, 6, 7), spacing=(0.3, 0.7, 1.1), origin=(-3.3, 5.5, 7.7), direction=DIRECTIONS[3])
    attributes["Origin"], attributes["Spacing"] = np.array(grid.origin), np.array(grid.spacing)
    attributes["Direction"] = np.array(grid.direction)
    voxels = RNG.random((1, 5, 6, 7)).astype("f4")
    stores.write_ome_zarr(
        tmp_path / "k.ome.zarr", voxels, spacing=grid.spacing, origin=grid.origin, attributes=attributes
    )
    read = open_image(tmp_path / "k.ome.zarr")
    assert read.dims == ("c", "z", "y", "x")
    assert grid_of(read) == grid
    np.testing.assert_array_equal(read.values, voxels)


def test_ome_zarr_models_finds_nothing_to_object_to(tmp_path: Path):
    models = pytest.importorskip("ome_zarr_models.v05.image")
    for number, (shape, channels) in enumerate([((70, 65, 5), None), ((513, 30), 3)]):
        write_image(tmp_path / f"{number}.ome.zarr", some_image(shape, "uint8", channels))
        group = zarr.open_group(tmp_path / f"{number}.ome.zarr", mode="r")
        model = models.Image.from_zarr(group)
        assert len(model.attributes.ome.multiscales[0].datasets) == 2


def test_ome_zarr_py_reads_the_same_levels(tmp_path: Path):
    io = pytest.importorskip("ome_zarr.io")
    reader = pytest.importorskip("ome_zarr.reader")
    image = some_image((70, 65, 5), "uint16")
    write_image(tmp_path / "i.ome.zarr", image)
    (node,) = reader.Reader(io.parse_url(str(tmp_path / "i.ome.zarr")))()
    assert [axis["name"] for axis in node.metadata["axes"]] == ["z", "y", "x"]
    for number, data in enumerate(node.data):
        level = open_image(tmp_path / "i.ome.zarr", number)
        np.testing.assert_array_equal(np.asarray(data), level.values)
        scale, translation = node.metadata["coordinateTransformations"][number]
        assert tuple(scale["scale"][::-1]) == grid_of(level).spacing
        assert translation["translation"] == [float(level.coords[d][0]) for d in "zyx"]


def test_opening_reads_no_voxel_and_a_block_is_a_shard(tmp_path: Path):
    write_image(tmp_path / "i.ome.zarr", some_image((300, 20, 70)), levels=False)
    for file in (tmp_path / "i.ome.zarr" / "0" / "c").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    read = open_image(tmp_path / "i.ome.zarr")
    assert read.chunks == ((256, 44), (20,), (70,))
    assert read.encoding["fidopt_source"] == (str(tmp_path / "i.ome.zarr"), 0, read.data.name)
    with pytest.raises(StoreError, match="is damaged"):
        read.values  # noqa: B018 - reading is what fails


def test_tensorstore_reads_what_zarr_python_reads(tmp_path: Path):
    if not tensorstore_installed():
        pytest.skip("tensorstore is not installed")
    image = some_image((40, 50, 3), "float32")
    write_image(tmp_path / "i.ome.zarr", image)
    read = open_image(tmp_path / "i.ome.zarr", library="tensorstore")
    np.testing.assert_array_equal(read.values, image.values)
    assert source_of(read).array.library == "tensorstore"


def test_a_task_reads_a_store_and_a_crop_of_it_by_path(tmp_path: Path):
    image = some_image((30, 20, 10), channels=2)
    write_image(tmp_path / "i.ome.zarr", image)
    read = open_image(tmp_path / "i.ome.zarr")
    whole = source_of(read)
    assert (whole.shape, whole.channels, whole.dtype) == ((30, 20, 10), 2, np.dtype("u1"))
    box = Region((3, 4, 5), (8, 9, 10))
    np.testing.assert_array_equal(whole.read(box), image.values[(slice(None), *box.slices)])
    part = source_of(read.isel(z=slice(2, 20), x=slice(1, 10)))
    np.testing.assert_array_equal(part.read(Region((1, 0, 2), (4, 9, 9))), image.values[:, 3:6, 0:9, 3:10])
    with pytest.raises(ValueError, match="lazy result"):
        source_of(read + 1)
    with pytest.raises(ValueError, match="lazy result"):
        source_of(read.isel(z=slice(2, 20)).isel(z=slice(0, 2)) * 2)


def test_a_store_that_another_tool_moved_is_where_that_tool_put_it(tmp_path: Path):
    image = some_image((5, 6, 7))
    write_image(tmp_path / "i.ome.zarr", image)
    file = tmp_path / "i.ome.zarr" / "zarr.json"
    root = json.loads(file.read_text())
    step = root["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][1]
    step["translation"] = [1.0, 2.0, 3.0]
    file.write_text(json.dumps(root))
    grid = grid_of(open_image(tmp_path / "i.ome.zarr"))
    assert grid.origin == (3.0, 2.0, 1.0)
    assert grid.direction == grid_of(image).direction


def test_the_last_of_konfais_stacked_values_counts(tmp_path: Path):
    image = some_image((5, 6))
    write_image(tmp_path / "i.ome.zarr", image)
    file = tmp_path / "i.ome.zarr" / "zarr.json"
    root = json.loads(file.read_text())
    root["attributes"]["konfai"]["attributes"]["Direction_1"] = "[0, 1, 1, 0]"
    file.write_text(json.dumps(root))
    assert grid_of(open_image(tmp_path / "i.ome.zarr")).direction == (0, 1, 1, 0)
    root["attributes"]["konfai"]["attributes"]["Direction_1"] = "[0, 1, 1]"
    file.write_text(json.dumps(root))
    with pytest.raises(StoreError, match="Direction: expected 4 numbers, got"):
        open_image(tmp_path / "i.ome.zarr")


def test_a_level_that_is_missing_is_refused(tmp_path: Path):
    write_image(tmp_path / "i.ome.zarr", some_image((70, 5, 5)))
    with pytest.raises(ValueError, match="has the levels 0 to 1, there is no level 2"):
        open_image(tmp_path / "i.ome.zarr", 2)
    (tmp_path / "i.ome.zarr" / "1" / "zarr.json").unlink()
    assert open_image(tmp_path / "i.ome.zarr").shape == (70, 5, 5)
    with pytest.raises(StoreError, match=r"neither zarr\.json nor \.zarray"):
        open_image(tmp_path / "i.ome.zarr", 1)


def test_lazy_images_of_two_stores_of_one_path_are_two(tmp_path: Path):
    names = []
    for value in (1, 2):
        image = image_of(np.full((3, 3), value), Grid.of((3, 3)))
        write_image(tmp_path / "i.ome.zarr", image, overwrite=True)
        read = open_image(tmp_path / "i.ome.zarr")
        names.append(read.data.name)
        assert dask.compute(read, scheduler="sync")[0].values.max() == value
    assert names[0] != names[1]


def test_a_store_is_written_neither_through_a_link_nor_inside_another(tmp_path: Path):
    image = image_of(np.ones((3, 4), np.uint8), Grid.of((3, 4)))
    write_image(tmp_path / "a.ome.zarr", image)
    (tmp_path / "link.ome.zarr").symlink_to("a.ome.zarr")
    with pytest.raises(StoreExistsError, match="is a link"):
        write_image(tmp_path / "link.ome.zarr", image, overwrite=True)
    with pytest.raises(StoreExistsError, match="lies inside the store"):
        write_image(tmp_path / "a.ome.zarr" / "b.ome.zarr", image)
    assert open_image(tmp_path / "link.ome.zarr").values.all()


def test_two_writers_of_one_store_do_not_mix(tmp_path: Path):
    where = str(tmp_path / "a.ome.zarr")
    image = image_of(np.ones((3, 4), np.uint8), Grid.of((3, 4)))
    with construction(where, {}, afresh=False):
        with pytest.raises(StoreExistsError, match="another process is writing"):
            write_image(where, image, overwrite=True)
        assert Path(where, ".journal", "header.json").is_file()
    write_image(where, image)
    with construction(where, {}, afresh=False), pytest.raises(StoreExistsError, match="another process is writing"):
        rewrite_levels(where)
