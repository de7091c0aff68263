"""The Jacobian determinant of a displacement field, and what is made of it."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows

from blocks.grid import Grid
from blocks.kernels import jacobian
from blocks.region import Region


def _oblique(ndim: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(ndim).normal(size=(ndim, ndim)))[0]


def _linear(grid: Grid, matrix: np.ndarray) -> np.ndarray:
    """Return u(x) = matrix x on a grid, (ndim, ...)."""
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"), axis=-1)
    return np.moveaxis(grid.world(index) @ matrix.T, -1, 0)


def _learn2reg(disp: np.ndarray) -> np.ndarray:
    """Determinants as Learn2Reg's definition has them: central differences in voxels, two voxels cropped a side."""
    gradient = np.stack([np.stack(np.gradient(disp[c]), axis=0) for c in range(disp.shape[0])])
    matrix = np.moveaxis(gradient, (0, 1), (-2, -1)) + np.eye(disp.shape[0])
    return np.linalg.det(matrix)[(slice(2, -2),) * disp.shape[0]]


@pytest.mark.parametrize("shape", [(9, 7), (6, 9, 7), (5, 5, 1)])
@pytest.mark.parametrize("kind", ["straight", "flipped", "oblique"])
def test_a_linear_field_has_one_determinant_everywhere_on_any_grid(shape, kind):
    ndim = len(shape)
    direction = {"straight": np.eye(ndim), "flipped": np.diag([-1.0] * ndim), "oblique": _oblique(ndim)}[kind]
    grid = Grid.of(shape, spacing=(0.7, 1.3, 2.5)[:ndim], origin=(5.0, -3.0, 11.0)[:ndim], direction=direction)
    matrix = np.random.default_rng(7).normal(scale=0.1, size=(ndim, ndim))
    if 1 in shape:  # nothing is known along an axis of one voxel
        along = grid.matrix[:, [ndim - 1 - shape.index(1)]]
        matrix -= matrix @ along @ along.T / float((along.T @ along).item())
    values = jacobian.determinant(_linear(grid, matrix), grid)
    assert values == pytest.approx(np.full(shape, np.linalg.det(np.eye(ndim) + matrix)), abs=1e-12)


@pytest.mark.parametrize("name", ["d4_flipped", "d4_oblique"])
def test_two_linear_fields_on_hard_grids_have_the_determinant_they_were_made_with(shared_case, name):
    image = sitk.ReadImage(str(shared_case(f"{name}.nii.gz")))
    grid = Grid.of(
        image.GetSize()[::-1], spacing=image.GetSpacing(), origin=image.GetOrigin(), direction=image.GetDirection()
    )
    vectors = np.moveaxis(sitk.GetArrayFromImage(image), -1, 0)
    assert jacobian.determinant(vectors, grid) == pytest.approx(np.full(grid.shape, 1.1625), abs=1e-6)
    whole = jacobian.regularity(vectors, grid)
    assert whole.folds == 0
    assert whole.spread == pytest.approx(0.0, abs=1e-7)


def test_the_spread_is_learn2regs_in_three_dimensions():
    disp = np.random.default_rng(2).normal(scale=0.3, size=(3, 11, 9, 10))  # voxels, components along the array's axes
    grid = Grid.of(disp.shape[1:], spacing=(0.9, 1.7, 3.1))
    vectors = disp[::-1] * np.array(grid.spacing)[:, None, None, None]
    expected = np.log((_learn2reg(disp) + 3).clip(1e-9, 1e9))
    got = jacobian.regularity(vectors, grid)
    assert got.spread == pytest.approx(expected.std(), rel=1e-12)
    assert got.logarithm.count == expected.size


@pytest.mark.parametrize("shape", [(70, 90), (9, 67, 70)])
def test_the_lattices_spread_is_a_plain_computations(shape):
    ndim = len(shape)
    grid = Grid.of(shape, spacing=(0.9, 1.7, 3.1)[:ndim], direction=_oblique(ndim))
    vectors = np.random.default_rng(1).normal(scale=0.4, size=(ndim, *shape))
    mask = np.random.default_rng(2).random(shape) < 0.4
    det = jacobian.determinant(vectors, grid)
    inner = (slice(2, -2),) * ndim
    logarithm = np.log(np.clip(det + 3, 1e-9, 1e9))
    whole, masked = jacobian.regularity(vectors, grid), jacobian.regularity(vectors, grid, mask=mask)
    assert whole.spread == pytest.approx(logarithm[inner].std(), rel=1e-12)
    assert whole.folded == (det <= 0).mean()
    assert masked.spread == pytest.approx(logarithm[inner][mask[inner]].std(), rel=1e-12)
    assert masked.folded == (det[mask] <= 0).mean()


def test_a_block_with_its_halo_holds_the_bits_of_the_whole():
    grid = Grid.of((9, 8, 7), spacing=(1.0, 2.0, 0.5), direction=_oblique(3))
    vectors = np.random.default_rng(5).normal(size=(3, *grid.shape)).astype(np.float32)
    whole = jacobian.determinant(vectors, grid)
    for region in grid.region.split((4, 3, 5)):
        read = region.expand(jacobian.HALO).clip(grid.shape)
        block = jacobian.determinant(vectors[(slice(None), *read.slices)], grid)
        assert (block[region.relative_to(read.start).slices] == whole[region.slices]).all()


def test_a_reflection_is_one_fold_everywhere():
    grid = Grid.of((6, 6))
    vectors = np.zeros((2, 6, 6))
    vectors[0] = -2.0 * np.arange(6)  # x -> -x
    got = jacobian.regularity(vectors, grid)
    assert (got.folded, got.folds, got.spread) == (1.0, 36, 0.0)


def test_no_displacement_has_a_spread_of_exactly_zero():
    grid = Grid.of((70, 9, 66), direction=_oblique(3))
    got = jacobian.regularity(np.broadcast_to(np.float32(0), (3, *grid.shape)), grid)
    assert (got.spread, got.folded) == (0.0, 0.0)


def test_a_field_too_thin_to_crop_has_folds_but_no_spread():
    grid = Grid.of((4, 9, 9))
    got = jacobian.regularity(np.zeros((3, *grid.shape)), grid)
    assert got.spread is None
    assert got.folded == 0.0


def test_a_mask_without_a_voxel_has_neither():
    grid = Grid.of((9, 9))
    got = jacobian.regularity(np.zeros((2, 9, 9)), grid, mask=np.zeros((9, 9), dtype=bool))
    assert (got.spread, got.folded) == (None, None)


def test_the_margin_and_the_offset_are_the_callers():
    grid = Grid.of((9, 9))
    vectors = np.random.default_rng(0).normal(scale=0.1, size=(2, 9, 9))
    det = jacobian.determinant(vectors, grid)
    part = jacobian.partial(vectors, grid, region=Region.of((9, 9)), margin=1, offset=5.0)
    assert part.spread == pytest.approx(np.log(det[1:-1, 1:-1] + 5.0).std(), rel=1e-12)


def test_components_that_do_not_fit_the_grid_are_refused():
    with pytest.raises(ValueError, match="2 axes has 2 components"):
        jacobian.determinant(np.zeros((3, 9, 9)), Grid.of((9, 9)))
