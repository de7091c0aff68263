"""A large dataset's case: landmarks at full resolution, labels at one level, a field on a grid of its own."""

import json

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name the field knows

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.image import levels_of
from blocks.kernels import histogram, overlap
from blocks.transforms import DisplacementField
from fidopt.cli import main
from fidopt.errors import FieldError, InputError
from fidopt.images.nifti import write_field
from fidopt.scoring import levels
from fidopt.scoring.evaluation import score_case
from fidopt.scoring.field import read_scored_field, zero_field
from fidopt.scoring.levels import fixed_grids, labels_level
from fidopt.scoring.submission import score, score_fields

pytest.importorskip("konfai", reason="KonfAI is not installed")

SHIFT = (3.0, -4.0, 2.0)
#: How much finer the images are than the other tests', by the number of axes: enough for several levels.
FINE = {2: 40, 3: 4}
#: Voxels that let level 1 be compared and not level 0.
FEW = {2: 1_500_000, 3: 1_000_000}


@pytest.fixture
def make_large(make_case, grids, monkeypatch):
    """Return a function that builds a case of a large dataset, its label maps to be compared at level 1."""

    def make(ndim: int = 3, **changes):
        monkeypatch.setattr(levels, "LEVEL_VOXELS", FEW[ndim])
        return make_case(ndim, shift=SHIFT, fine=FINE[ndim], large=True, **changes)

    return make


def _own_grid(fixed: Grid) -> Grid:
    """Return a coarser grid along the fixed one's axes that covers it and more, aligned with none of its levels."""
    shape = tuple(max(n // 5, 6) for n in fixed.shape)
    spacing = [s * n * 1.1 / m for s, n, m in zip(fixed.spacing, fixed.shape[::-1], shape[::-1], strict=True)]
    middle = fixed.world((np.array(fixed.shape) - 1) / 2)
    origin = middle - (fixed.direction_matrix * spacing) @ ((np.array(shape[::-1]) - 1) / 2)
    return Grid.of(shape, spacing=spacing, origin=origin, direction=fixed.direction)


def _wavy(grid: Grid) -> DisplacementField:
    index = np.stack(np.meshgrid(*[np.arange(n) for n in grid.shape], indexing="ij"))
    waves = [SHIFT[c] + 1.5 * np.sin(index[c] / 3.0) * np.cos(index[-1] / 4.0) for c in range(grid.ndim)]
    return DisplacementField(grid, np.stack(waves).astype(np.float32))


def _itk(array: np.ndarray, grid: Grid, *, vector: bool = False) -> sitk.Image:
    image = sitk.GetImageFromArray(np.moveaxis(array, 0, -1) if vector else array, isVector=vector)
    image.SetSpacing(grid.spacing)
    image.SetOrigin(grid.origin)
    image.SetDirection(grid.direction)
    return image


def _itk_transform(field: DisplacementField) -> sitk.DisplacementFieldTransform:
    return sitk.DisplacementFieldTransform(_itk(np.asarray(field.vectors, dtype=np.float64), field.grid, vector=True))


@pytest.mark.parametrize("ndim", [2, 3])
def test_labels_are_compared_at_the_finest_level_small_enough_on_any_field_grid(make_large, grids, ndim):
    case = make_large(ndim)
    field = _wavy(_own_grid(grids(ndim, FINE[ndim])[0]))
    scores = score_case(case, field)
    assert scores.metrics["labels_level"] == 1.0
    fixed, moving = (blocks.open_image(path, level=1) for path in case.label_sets()[""])
    reference = _itk(np.zeros(fixed.shape, np.uint8), blocks.grid_of(fixed))
    theirs = _itk(np.asarray(moving), blocks.grid_of(moving))
    warped = sitk.GetArrayFromImage(sitk.Resample(theirs, reference, _itk_transform(field), sitk.sitkNearestNeighbor))
    truth = np.asarray(fixed)
    for label in (1, 614454277):
        a, b = truth == label, warped == label
        assert scores.labels["dice"][str(label)] == pytest.approx(2 * (a & b).sum() / (a.sum() + b.sum()), abs=1e-9)
    lazy = blocks.warp(moving, field, blocks.grid_of(fixed), interpolation="nearest")
    counts = compute(blocks.overlap(fixed, lazy)).select([1, 614454277])
    assert list(scores.labels["dice"].values()) == overlap.dice(counts).tolist()


@pytest.mark.parametrize("ndim", [2, 3])
def test_landmarks_are_read_at_full_resolution_and_out_to_the_edges_of_the_fields_voxels(make_large, grids, ndim):
    fixed = grids(ndim, FINE[ndim])[0]
    last = np.array(fixed.shape) - 1
    index = np.concatenate([[last * 0, last, last / 3 + 0.25], np.random.default_rng(0).uniform(0, last, (20, ndim))])
    points = fixed.world(index)
    case = make_large(ndim, points={"fixed_landmarks": points, "moving_landmarks": points})
    # The second coarsest level: its outermost centres lie inside the image's.
    field = _wavy(fixed_grids(case)[-2])
    transform = _itk_transform(field)
    errors = [np.linalg.norm(np.array(transform.TransformPoint(p)) - p) for p in points]
    assert min(errors) > 0.5
    scores = score_case(case, field)
    assert scores.landmarks["tre"] == pytest.approx(errors, abs=1e-9)
    assert scores.metrics["rtre"] == pytest.approx(np.mean(errors) / fixed.diagonal, abs=1e-12)


@pytest.mark.parametrize("ndim", [2, 3])
def test_regularity_is_the_fields_on_its_own_grid_with_body_and_mask_brought_there(
    make_large, grids, truth, ndim, monkeypatch
):
    fixed = grids(ndim, FINE[ndim])[0]
    mask = (truth(fixed, np.zeros(ndim)) == 1).astype(np.uint8)
    case = make_large(ndim, masks={"fixed_mask": mask})
    field = _wavy(_own_grid(fixed))
    grid = field.grid
    steps = np.tensordot(grid.inverse_matrix, np.asarray(field.vectors, dtype=np.float64), axes=1)
    gradient = np.stack([np.stack(np.gradient(c)[::-1]) for c in steps])
    det = np.linalg.det(np.moveaxis(gradient, (0, 1), (-2, -1)) + np.eye(ndim))
    logarithm = np.log(np.clip(det + 3, 1e-9, 1e9))
    monkeypatch.setattr(levels, "LEVEL_VOXELS", 160_000)
    number = levels.level_within(case.fixed)
    assert number == 1
    places = {"": np.ones(grid.shape, dtype=bool)}
    for name, path in (("_body", case.fixed), ("_mask", case.masks()["fixed_mask"])):
        image = blocks.open_image(path, level=number)
        where = grid.world(np.stack(np.meshgrid(*map(np.arange, grid.shape), indexing="ij"), axis=-1))
        index = np.floor(blocks.grid_of(image).index(where) + 0.5).astype(int)
        inside = ((index >= 0) & (index < image.shape)).all(axis=-1)
        at = tuple(np.moveaxis(np.clip(index, 0, np.array(image.shape) - 1), -1, 0))
        values = np.asarray(image)
        low, high = histogram.partial_range(values)
        threshold = histogram.otsu(histogram.partial(values, low=low, high=high), low=low, high=high)
        places[name] = inside & (values[at] > (threshold if name == "_body" else 0))
    metrics = score_case(case, field).metrics
    inner = (slice(2, -2),) * ndim
    for name, where in places.items():
        assert where.sum() > 10
        assert metrics[f"sdlogj{name}"] == pytest.approx(logarithm[inner][where[inner]].std(), abs=1e-12)
        assert metrics[f"folds{name}"] == pytest.approx((det <= 0)[where].mean(), abs=1e-12)


def test_a_field_and_images_read_lazily_or_by_workers_have_the_same_scores(
    make_large, grids, truth, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    fixed, moving = grids(3, FINE[3])
    mask = (truth(fixed, np.zeros(3)) == 1).astype(np.uint8)
    ignored = (truth(moving, np.array(SHIFT)) != 1).astype(np.uint8)
    points = fixed.world(np.random.default_rng(0).uniform(0, np.array(fixed.shape) - 1, (20, 3)))
    marks = {"fixed_landmarks": points, "moving_landmarks": points}
    case = make_large(3, masks={"fixed_mask": mask, "moving_ignore": ignored}, points=marks)
    field = _wavy(_own_grid(fixed))
    blocks.write_image(tmp_path / "DVF.ome.zarr", blocks.image_of(field.vectors, field.grid), levels=False)
    held = score_case(case, read_scored_field(tmp_path, case))
    monkeypatch.setattr("fidopt.images.fields.LAZY_BYTES", 0)
    monkeypatch.setattr("fidopt.scoring.regularity.LAZY_BYTES", 0)
    lazy = read_scored_field(tmp_path, case)
    assert not lazy.in_memory
    assert score_case(case, lazy) == held
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )
    with local, distributed.Client(local) as client:
        assert score_case(case, lazy, client=client) == held


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_unregistered_pair_is_scored_on_the_coarsest_level_and_is_the_same_on_any(
    make_large, grids, ndim, monkeypatch
):
    fixed = grids(ndim, FINE[ndim])[0]
    points = fixed.world(np.random.default_rng(0).uniform(0, np.array(fixed.shape) - 1, (5, ndim)))
    case = make_large(ndim, points={"fixed_landmarks": points, "moving_landmarks": points + 1.0})
    assert len(levels_of(case.fixed)) > 1
    zero = DisplacementField(fixed, np.zeros((ndim, *fixed.shape), dtype=np.float32))
    asked = []
    monkeypatch.setattr("fidopt.scoring.evaluation.zero_field", lambda grid: asked.append(grid) or zero_field(grid))
    before, same = score_case(case, None), score_case(case, zero)
    assert asked == [levels_of(case.fixed)[-1].grid]
    assert (before.metrics["sdlogj"], before.metrics["folds"]) == (0.0, 0.0)
    for name in ("dice", "hd95", "labels_lost", "tre", "tre_p95", "rtre", "labels_level"):
        assert before.metrics[name] == same.metrics[name]


def test_a_large_dataset_that_is_small_has_the_scores_of_any_other(make_case, grids, truth):
    mask = (truth(grids()[0], np.zeros(3)) == 1).astype(np.uint8)
    field = _wavy(grids()[0])
    usual = score_case(make_case(shift=SHIFT, masks={"fixed_mask": mask}), field)
    large = score_case(make_case(shift=SHIFT, masks={"fixed_mask": mask}, large=True, name="case02"), field)
    assert large.metrics == usual.metrics | {"labels_level": 0.0}
    assert large.labels == usual.labels


def test_only_a_large_dataset_has_a_level(make_case):
    assert labels_level(make_case(large=True, maps={})) is None
    assert labels_level(make_case(name="case02")) is None
    assert "labels_level" not in score_case(make_case(fine=2, name="case03", cases=_CASES), None).metrics


_CASES = {"case03": {"source": "tests", "learn2reg": "0001_0002", "subjects": ["a", "a"]}}


def test_label_maps_without_a_level_small_enough_are_refused(make_large, monkeypatch):
    case = make_large()
    monkeypatch.setattr(levels, "LEVEL_VOXELS", 100)
    with pytest.raises(InputError, match=r"labels.*more than the 100 that are compared.*fidopt pyramid"):
        labels_level(case)


def test_the_field_of_a_level_written_with_a_header_in_float32_lies_on_exactly_that_level(make_large, tmp_path):
    case = make_large(2)
    level = fixed_grids(case)[1]
    field = _wavy(level)
    write_field(tmp_path / "DVF.nii.gz", np.asarray(field.vectors), level)
    assert read_scored_field(tmp_path, case).grid == level


@pytest.mark.parametrize("ndim", [2, 3])
def test_every_level_and_a_coarser_grid_that_covers_the_image_are_taken(make_large, grids, tmp_path, ndim):
    case = make_large(ndim)
    for number, grid in enumerate([*fixed_grids(case), _own_grid(grids(ndim, FINE[ndim])[0])]):
        folder = tmp_path / str(number)
        folder.mkdir()
        field = _wavy(grid)
        blocks.write_image(folder / "DVF.ome.zarr", blocks.image_of(field.vectors, grid), levels=False)
        assert read_scored_field(folder, case).grid.matches(grid)


def _refusal(case, grid: Grid, folder) -> str:
    field = _wavy(grid)
    blocks.write_image(folder / "DVF.ome.zarr", blocks.image_of(field.vectors, grid), levels=False, overwrite=True)
    with pytest.raises(FieldError) as caught:
        read_scored_field(folder, case)
    return str(caught.value)


def test_a_field_that_leaves_a_part_of_the_image_out_is_refused(make_large, tmp_path):
    case = make_large()
    grid = fixed_grids(case)[-1]
    short = Grid((grid.shape[0] - 1, *grid.shape[1:]), grid.spacing, grid.origin, grid.direction)
    assert "does not cover the fixed image along z; every fixed voxel's centre needs" in _refusal(case, short, tmp_path)
    far = Grid(grid.shape, grid.spacing, tuple(grid.world([0.3, 0.0, 0.3])), grid.direction)
    assert "does not cover the fixed image along z and x;" in _refusal(case, far, tmp_path)


def test_a_field_along_other_axes_is_refused(make_large, tmp_path):
    case = make_large()
    grid = fixed_grids(case)[-1]
    straight = Grid.of((60, 60, 60), spacing=(5, 5, 5), origin=(-150, -150, -150))
    assert "axes are not the fixed image's; write it on a coarser grid along the same axes" in _refusal(
        case, straight, tmp_path
    )
    assert grid.direction != straight.direction


def test_a_coarser_field_of_a_dataset_that_is_not_large_is_refused(make_case, grids, tmp_path):
    assert "another grid than the fixed image" in _refusal(make_case(), grids()[0].halved(), tmp_path)


def test_a_coarser_field_is_scored_by_the_command_as_by_the_function(make_large, roots, tmp_path, capsys, monkeypatch):
    case = make_large(2)
    field = _wavy(fixed_grids(case)[-1])
    (tmp_path / "fields" / "case01").mkdir(parents=True)
    file = tmp_path / "fields" / "case01" / "DVF.nii.gz"
    write_field(file, np.asarray(field.vectors), field.grid)
    for variable, folder in (("SHARE", "share"), ("CORPUS", "corpus"), ("RESULTS", "results")):
        monkeypatch.setenv(f"FIDOPT_{variable}", str(tmp_path / folder))
    words = ["score", "it", "tiny", "case01", "--fields", str(tmp_path / "fields"), "--machine", "here", "--json"]
    assert main(words) == 0
    row = json.loads(capsys.readouterr().out)["rows"]["case01"]
    assert "error" not in {key for key, value in row.items() if value is not None}
    assert row["metrics"]["labels_level"] == 1.0
    assert row["metrics"] == score("tiny", "case01", file, roots=roots).metrics
    assert row["metrics"] == pytest.approx(score_case(case, field).metrics)


def test_fields_are_scored_by_workers_as_without_them(make_large, roots, tmp_path):
    distributed = pytest.importorskip("distributed")
    case = make_large(2)
    field = _wavy(fixed_grids(case)[-1])
    folder = tmp_path / "fields" / "case01"
    folder.mkdir(parents=True)
    blocks.write_image(folder / "DVF.ome.zarr", blocks.image_of(field.vectors, field.grid), levels=False)
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
    )
    with local, distributed.Client(local) as client:
        said = {"fields": tmp_path / "fields", "roots": roots, "machine": "here"}
        (scored,) = score_fields("it", case.dataset, ["case01"], client=client, **said).cases
    assert scored.row.metrics == score_case(case, field).metrics
