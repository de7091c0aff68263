import os
import socket
import subprocess

import numpy as np
import pytest

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, levels_of, open_image, unit_of
from fidopt.errors import FidoptError, InputError, OutputExistsError
from fidopt.images import conversion
from fidopt.images.atomic import written_whole
from fidopt.images.conversion import convert
from fidopt.images.nifti import write_nifti
from fidopt.images.readers import read_image
from fidopt.images.writers import write_file

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]


def store(path, array, grid, **options):
    write_image(path, image_of(array, grid, **options))
    return path


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd"])
def test_a_file_becomes_a_store_and_comes_back(tmp_path, oblique, random, dtype, ending):
    array = random.integers(0, 2, oblique.shape).astype(dtype)
    write_file(tmp_path / f"a{ending}", image_of(array, oblique))
    done = convert(tmp_path / f"a{ending}", tmp_path / "a.ome.zarr")
    assert done.state == "written"
    read, stored = read_image(tmp_path / f"a{ending}"), open_image(tmp_path / "a.ome.zarr")
    assert stored.dtype == read.dtype
    assert np.array_equal(stored.values, array)
    # To the last digit.
    assert grid_of(stored) == grid_of(read)
    assert unit_of(stored) == "mm"
    convert(tmp_path / "a.ome.zarr", tmp_path / f"b{ending}")
    back = read_image(tmp_path / f"b{ending}")
    assert np.array_equal(back.values, array)
    assert grid_of(back).matches(oblique)


def test_a_colour_goes_to_tiff_and_back(tmp_path, random):
    grid = Grid.of((13, 15), spacing=(0.5, 0.5))
    array = random.integers(0, 255, (3, 13, 15)).astype(np.uint8)
    store(tmp_path / "c.ome.zarr", array, grid, unit="um")
    done = convert(tmp_path / "c.ome.zarr", tmp_path / "c.tif")
    assert done.lost == ()
    convert(tmp_path / "c.tif", tmp_path / "d.ome.zarr")
    back = open_image(tmp_path / "d.ome.zarr")
    assert np.array_equal(back.values, array)
    assert (grid_of(back), unit_of(back)) == (grid, "um")


def test_what_tiff_cannot_keep_is_said(tmp_path, oblique, random):
    store(tmp_path / "o.ome.zarr", random.integers(0, 9, oblique.shape), oblique)
    lost = " ".join(convert(tmp_path / "o.ome.zarr", tmp_path / "o.tif").lost)
    assert "no place for the origin" in lost
    assert "no place for the direction" in lost
    assert "int64 has no place for the spacing" in lost


@pytest.mark.parametrize(("unit", "factor"), [("um", 1e-3), ("m", 1e3), ("px", 1), ("mm", 1)])
def test_nifti_states_the_unit_it_knows_and_says_the_one_it_does_not(tmp_path, unit, factor):
    grid = Grid.of((4, 5), spacing=(0.5, 0.25))
    store(tmp_path / "u.ome.zarr", np.zeros((4, 5), np.uint8), grid, unit=unit)
    done = convert(tmp_path / "u.ome.zarr", tmp_path / "u.nii.gz")
    assert any("does not state the unit" in sentence for sentence in done.lost) == (unit == "px")
    assert np.allclose(grid_of(read_image(tmp_path / "u.nii.gz")).spacing, np.array(grid.spacing) * factor)


def test_labels_are_recorded_as_labels_and_rounded(tmp_path, oblique):
    array = np.zeros(oblique.shape, np.float32)
    array[2:4] = 2.9999998
    write_nifti(tmp_path / "l.nii.gz", image_of(array, oblique))
    convert(tmp_path / "l.nii.gz", tmp_path / "l.ome.zarr", labels=True)
    stored = open_image(tmp_path / "l.ome.zarr")
    assert kind_of(stored) == "labels"
    assert stored.dtype == np.uint8
    assert np.unique(stored.values).tolist() == [0, 3]
    assert kind_of(read_image(tmp_path / "l.ome.zarr")) == "labels"


def test_a_store_s_kind_unit_and_spacing_can_be_corrected_in_a_copy(tmp_path, random):
    array = random.integers(0, 5, (6, 7)).astype(np.float32)
    store(tmp_path / "a.ome.zarr", array, Grid.of((6, 7)), unit="px")
    convert(tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr", labels=True, unit="um", spacing=(0.5, 0.25))
    copy = open_image(tmp_path / "b.ome.zarr")
    assert (kind_of(copy), unit_of(copy), grid_of(copy).spacing) == ("labels", "um", (0.5, 0.25))
    assert copy.dtype == np.uint8


def test_the_same_output_is_left_alone_and_another_is_refused(tmp_path, oblique, random):
    for number in (1, 2):
        write_nifti(tmp_path / f"{number}.nii.gz", image_of(random.random(oblique.shape), oblique))
    for out in ("s.ome.zarr", "s.tif", "s.mha"):
        assert convert(tmp_path / "1.nii.gz", tmp_path / out).state == "written"
        assert convert(tmp_path / "1.nii.gz", tmp_path / out).state == "there already"
        with pytest.raises(OutputExistsError, match=r"is another image \(693 of 693 values differ\)"):
            convert(tmp_path / "2.nii.gz", tmp_path / out)
        assert convert(tmp_path / "2.nii.gz", tmp_path / out, overwrite=True).state == "written"
        assert convert(tmp_path / "2.nii.gz", tmp_path / out).state == "there already"


def test_a_store_of_another_geometry_unit_or_kind_is_another_image(tmp_path, random):
    array = random.integers(0, 5, (6, 7)).astype(np.uint8)
    grid = Grid.of((6, 7))
    store(tmp_path / "a.ome.zarr", array, grid)
    for changed in (
        image_of(array, Grid.of((6, 7), origin=(0, 1e-13))),
        image_of(array, grid, unit="um"),
        image_of(array, grid, kind="labels"),
        image_of(array.astype(np.int16), grid),
    ):
        write_image(tmp_path / "b.ome.zarr", changed, overwrite=True)
        with pytest.raises(OutputExistsError):
            convert(tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr")


def test_a_store_that_was_not_finished_is_written_again(tmp_path, oblique, random):
    write_nifti(tmp_path / "a.nii.gz", image_of(random.random(oblique.shape), oblique))
    (tmp_path / "a.ome.zarr" / ".journal").mkdir(parents=True)
    assert convert(tmp_path / "a.nii.gz", tmp_path / "a.ome.zarr").state == "written"


def test_a_folder_that_is_no_store_is_never_replaced(tmp_path, oblique, random):
    write_nifti(tmp_path / "a.nii.gz", image_of(random.random(oblique.shape), oblique))
    (tmp_path / "a.ome.zarr").mkdir()
    (tmp_path / "a.ome.zarr" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="is not a store; it is left alone"):
        convert(tmp_path / "a.nii.gz", tmp_path / "a.ome.zarr", overwrite=True)
    assert (tmp_path / "a.ome.zarr" / "letter.txt").read_text() == "mine"


def test_a_store_is_not_converted_onto_itself(tmp_path, random):
    store(tmp_path / "a.ome.zarr", random.random((6, 7)), Grid.of((6, 7)))
    with pytest.raises(FidoptError, match="which it would replace"):
        convert(tmp_path / "a.ome.zarr", tmp_path / "a.ome.zarr", unit="um", overwrite=True)


def test_what_is_read_back_wrong_is_not_called_done(tmp_path, random, monkeypatch):
    store(tmp_path / "a.ome.zarr", random.random((6, 7)), Grid.of((6, 7)))
    monkeypatch.setattr(conversion, "write_file", lambda path, image: write_nifti(path, image + 1))
    with pytest.raises(FidoptError, match=r"is not what was read from .*: 42 of 42 values differ"):
        convert(tmp_path / "a.ome.zarr", tmp_path / "a.nii")


def test_nan_is_equal_to_nan(tmp_path, oblique):
    array = np.full(oblique.shape, np.nan, np.float32)
    store(tmp_path / "a.ome.zarr", array, oblique)
    assert convert(tmp_path / "a.ome.zarr", tmp_path / "a.nii.gz").state == "written"


def test_a_format_that_is_not_written_is_named_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match=r"x\.png: this format is not written"):
        convert(tmp_path / "nothing.nii", tmp_path / "x.png")


def test_a_store_of_several_shards_is_converted_block_by_block(tmp_path, random):
    array = random.integers(0, 99, (5, 300, 70)).astype(np.int16)
    store(tmp_path / "a.ome.zarr", array, Grid.of(array.shape))
    assert levels_of(tmp_path / "a.ome.zarr")[0].shards == (64, 256, 128)
    for out in ("a.nii", "a.tif"):
        convert(tmp_path / "a.ome.zarr", tmp_path / out)
        assert np.array_equal(read_image(tmp_path / out).values, array)


def test_a_slide_becomes_a_store_and_a_tiff(tmp_path, shared_data):
    convert(shared_data("slide") / "cmu_small_region.svs", tmp_path / "s.ome.zarr")
    assert unit_of(open_image(tmp_path / "s.ome.zarr")) == "um"


def test_a_file_that_does_not_come_back_as_it_was_never_takes_its_name(tmp_path):
    sheared = Grid.of((3, 4, 5), direction=(1, 0, 0, 0.5, 1, 0, 0, 0, 1))
    flat = Grid.of((1, 4, 5))
    for name, grid in (("v.nrrd", sheared), ("v.nii.gz", sheared), ("v.tif", flat)):
        write_image(tmp_path / "v.ome.zarr", image_of(np.zeros(grid.shape, np.uint8), grid), overwrite=True)
        with pytest.raises(FidoptError):
            convert(tmp_path / "v.ome.zarr", tmp_path / name)
        assert [path.name for path in tmp_path.iterdir()] == ["v.ome.zarr"]


def test_what_a_killed_process_was_writing_is_cleared_away(tmp_path):
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    host = socket.gethostname()
    for pid in (gone.pid, os.getpid()):
        (tmp_path / f".{host}-{pid}.v.txt").write_text("half")
    (tmp_path / f".elsewhere-{gone.pid}.v.txt").write_text("half")
    (tmp_path / f".{host}-{gone.pid}.other.txt").write_text("half")
    with written_whole(tmp_path / "v.txt") as part:
        part.write_text("whole")
    left = {f".elsewhere-{gone.pid}.v.txt", f".{host}-{gone.pid}.other.txt", "v.txt"}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert (tmp_path / "v.txt").read_text() == "whole"


def test_an_image_of_a_collection_is_a_store_whatever_its_name(tmp_path, random):
    array, grid = random.integers(0, 99, (3, 4, 5)).astype(np.uint8), Grid.of((3, 4, 5))
    store(tmp_path / "series.zarr", array, grid)
    (tmp_path / "slide.zarr").mkdir()
    (tmp_path / "series.zarr").rename(tmp_path / "slide.zarr" / "0")
    assert convert(tmp_path / "slide.zarr" / "0", tmp_path / "a.nii.gz").state == "written"
    assert np.array_equal(read_image(tmp_path / "a.nii.gz").values, array)
    assert np.array_equal(read_image(f"file://{tmp_path}/slide.zarr/0/").values, array)
