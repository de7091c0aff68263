"""``fidopt convert``: exit codes, and what it prints."""

from __future__ import annotations

import json

import imageio.v3 as iio
import numpy as np
import pytest

from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, open_image, unit_of
from fidopt.cli import main
from fidopt.images.nifti import write_nifti


@pytest.fixture
def scan(tmp_path, monkeypatch):
    """A folder, the current one, with scan.nii.gz of 4 x 5 x 6 voxels in it."""
    monkeypatch.chdir(tmp_path)
    array = np.arange(120, dtype=np.int16).reshape(4, 5, 6)
    write_nifti("scan.nii.gz", image_of(array, Grid.of(array.shape, spacing=(0.5, 1, 2))))
    return tmp_path


def test_a_scan_becomes_a_store_and_a_file_again(scan, capsys):
    assert main(["convert", "scan.nii.gz", "scan.ome.zarr"]) == 0
    out, err = capsys.readouterr()
    assert out == "scan.ome.zarr: 4 x 5 x 6 (z, y, x) of int16, written, read back and compared\n"
    assert err == ""
    assert main(["convert", "scan.ome.zarr", "copy.nii.gz"]) == 0
    assert (scan / "copy.nii.gz").read_bytes() == (scan / "scan.nii.gz").read_bytes()


def test_the_same_output_is_done_and_another_is_exit_code_two(scan, capsys):
    assert main(["convert", "scan.nii.gz", "scan.ome.zarr"]) == 0
    assert main(["convert", "scan.nii.gz", "scan.ome.zarr"]) == 0
    assert "there already with the same voxels and geometry" in capsys.readouterr().out
    assert main(["convert", "scan.nii.gz", "scan.ome.zarr", "--labels"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("fidopt: scan.ome.zarr is there and is another image (its kind is image, expected labels)")
    assert err.count("\n") == 1
    assert main(["convert", "scan.nii.gz", "scan.ome.zarr", "--labels", "--overwrite"]) == 0
    assert kind_of(open_image("scan.ome.zarr")) == "labels"


def test_json_is_one_document_and_what_is_lost_goes_to_stderr(scan, capsys):
    write_nifti("far.nii", image_of(np.zeros((4, 5), np.uint8), Grid.of((4, 5), origin=(7, 8))))
    assert main(["convert", "far.nii", "far.tif", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document == {
        "source": "far.nii",
        "destination": "far.tif",
        "shape": [4, 5],
        "dims": ["y", "x"],
        "dtype": "uint8",
        "state": "written",
        "not_kept": ["TIFF has no place for the origin (7.0, 8.0)"],
    }
    assert err == "far.tif: TIFF has no place for the origin (7.0, 8.0)\n"


def test_unit_and_spacing_are_given_where_the_file_has_none(scan):
    iio.imwrite("photo.png", np.zeros((4, 5, 3), np.uint8), plugin="pillow")
    assert main(["convert", "photo.png", "photo.ome.zarr", "--unit", "um", "--spacing", "0.5,0.25"]) == 0
    image = open_image("photo.ome.zarr")
    assert (unit_of(image), grid_of(image).spacing) == ("um", (0.5, 0.25))
    assert image.dims == ("c", "y", "x")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing.nii", "x.ome.zarr"], "nothing.nii: there is no such file"),
        (["scan.nii.gz", "x.jpg"], "x.jpg: this format is not written"),
        (["scan.nii.gz", "x.ome.zarr", "--spacing", "1;2"], "--spacing expects numbers"),
        (["scan.nii.gz", "x.ome.zarr", "--spacing", "1,2"], "a spacing of 3 numbers"),
        (["scan.nii.gz", "x.ome.zarr", "--spacing", "1,0,2"], "spacing must be positive"),
        (["scan.nii.gz"], "see `fidopt convert --help`"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(scan, capsys, words, why):
    assert main(["convert", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert err.count("\n") == 1
    assert not (scan / "x.ome.zarr").exists()


@pytest.mark.parametrize(
    ("case", "words", "why"),
    [
        ("d1_truncated.nii.gz", [], "the gzip stream ends too soon"),
        ("d2_dispvect.nii.gz", [], "1007 (vector) is expected"),
        ("d8_half.nii.gz", ["--labels"], "hold 2.5"),
        ("d12_zero_pixdim.nii", [], "must be positive, got 0"),
    ],
)
def test_the_shared_faults_are_refused(scan, capsys, shared_case, case, words, why):
    assert main(["convert", str(shared_case(case)), "x.ome.zarr", *words]) == 2
    err = capsys.readouterr().err
    assert case in err
    assert why in err
    assert err.count("\n") == 1
    assert not (scan / "x.ome.zarr").exists()


@pytest.mark.parametrize("case", ["d8_float.nii.gz", "d8_wide.nii.gz", "d11_4d.nii.gz"])
def test_the_shared_files_that_are_right_are_converted(scan, shared_case, case):
    assert main(["convert", str(shared_case(case)), "x.ome.zarr", "--labels"]) == 0
    assert open_image("x.ome.zarr").ndim == 3
