"""A method's field: read on exactly the fixed grid, or refused with a sentence that says why."""

import gzip
import shutil

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows

import blocks
from blocks.grid import Grid
from fidopt.errors import FieldError
from fidopt.images.conventions import CONVENTIONS
from fidopt.images.nifti import write_field
from fidopt.scoring.field import find_field, read_scored_field, zero_field


def _vectors(grid: Grid) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(grid.ndim, *grid.shape)).astype(np.float32)


@pytest.fixture
def case(make_case):
    return make_case()


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_field_comes_back_on_exactly_the_fixed_grid(make_case, grids, tmp_path, ndim):
    case, grid = make_case(ndim), grids(ndim)[0]
    vectors = _vectors(grid)
    write_field(tmp_path / "DVF.nii.gz", vectors, grid)
    field = read_scored_field(tmp_path, case)
    assert field.grid == grid
    assert (np.asarray(field.vectors[:]) == vectors).all()


def test_a_store_is_read_too(case, grids, tmp_path):
    grid = grids()[0]
    blocks.write_image(tmp_path / "DVF.ome.zarr", blocks.image_of(_vectors(grid), grid), levels=False)
    assert (np.asarray(read_scored_field(tmp_path, case).vectors[:]) == _vectors(grid)).all()


def test_voxels_along_the_index_axes_become_world_displacements(case, grids, tmp_path):
    grid = grids()[0]
    steps = _vectors(grid)
    # Learn2Reg's (x, y, z, 3): the components are the last of four axes.
    sitk.WriteImage(sitk.JoinSeries([sitk.GetImageFromArray(component) for component in steps]), tmp_path / "d.nii.gz")
    field = read_scored_field(tmp_path / "d.nii.gz", case, convention=CONVENTIONS["learn2reg"])
    index = np.array([3.0, 5.0, 7.0])
    voxel = (slice(None), 3, 5, 7)
    expected = grid.world(index + steps[voxel][::-1]) - grid.world(index)
    assert np.asarray(field.vectors[:])[voxel] == pytest.approx(expected, abs=1e-5)


def test_another_grid_is_refused_and_both_are_named(case, grids, tmp_path):
    grid = grids()[0]
    moved = Grid(grid.shape, grid.spacing, (4.001, -7.0, 11.0), grid.direction)
    write_field(tmp_path / "DVF.nii.gz", _vectors(grid), moved)
    with pytest.raises(FieldError, match=r"another grid .* origin \(4\.00\d+, .*; the fixed image has 18 x 21 x 15 "):
        read_scored_field(tmp_path, case)


def test_another_shape_is_refused(case, tmp_path):
    grid = Grid.of((3, 4, 5))
    write_field(tmp_path / "DVF.nii.gz", _vectors(grid), grid)
    with pytest.raises(FieldError, match="the field has 5 x 4 x 3 voxels"):
        read_scored_field(tmp_path, case)


def test_whole_numbers_are_refused(case, grids, tmp_path):
    grid = grids()[0]
    blocks.write_image(tmp_path / "DVF.ome.zarr", blocks.image_of(_vectors(grid).astype(np.int16), grid), levels=False)
    with pytest.raises(FieldError, match="int16; write its displacements as float32"):
        read_scored_field(tmp_path, case)


def test_a_file_cut_short_is_refused(case, grids, tmp_path):
    grid = grids()[0]
    write_field(tmp_path / "whole.nii.gz", _vectors(grid), grid)
    data = (tmp_path / "whole.nii.gz").read_bytes()
    (tmp_path / "DVF.nii.gz").write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(FieldError, match=r"DVF\.nii\.gz"):
        read_scored_field(tmp_path, case)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_place(case, grids, tmp_path, bad):
    grid = grids()[0]
    vectors = _vectors(grid)
    vectors[1, 2, 3, 4] = bad
    write_field(tmp_path / "DVF.nii.gz", vectors, grid)
    with pytest.raises(FieldError, match=r"1 voxel is not finite .* first at .*\(4, 3, 2\)"):
        read_scored_field(tmp_path, case)


@pytest.mark.parametrize("name", ["d9_nan", "d9_inf"])
def test_files_with_one_bad_voxel_are_refused(case, shared_case, name):
    with pytest.raises(FieldError, match=r"1 voxel is not finite .* first at .*\(3, 3, 3\)"):
        read_scored_field(shared_case(f"{name}.nii.gz"), case)


def test_an_intent_that_readers_negate_is_refused(case, shared_case):
    with pytest.raises(FieldError, match="1007"):
        read_scored_field(shared_case("d2_dispvect.nii.gz"), case)


def test_no_field_in_a_folder_is_said(case, tmp_path):
    with pytest.raises(FieldError, match="one field named DVF"):
        read_scored_field(tmp_path, case)


def test_fields_are_found_by_case_or_by_learn2regs_numbers(case, tmp_path, shared_case):
    assert find_field(tmp_path, case) is None
    learn2reg = tmp_path / "disp_0001_0002.nii.gz"
    shutil.copyfile(shared_case("d2_l2r_4d.nii.gz"), learn2reg)
    assert find_field(tmp_path, case) == learn2reg
    (tmp_path / "case01").mkdir()
    (tmp_path / "case01" / "DVF.mha").write_bytes(gzip.compress(b"x"))
    with pytest.raises(FieldError, match="several fields"):
        find_field(tmp_path, case)


def test_the_zero_field_takes_no_memory(grids):
    field = zero_field(grids()[0])
    assert field.vectors.strides == (0, 0, 0, 0)
    points = np.array([[1.0, 2.0, 3.0]])
    assert (field.points(points) == points).all()
