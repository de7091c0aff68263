"""Pictures of a scored case: which there are, that they show what they say, are bounded and the same twice."""

from __future__ import annotations

import dask.array as da
import imageio.v3 as iio
import numpy as np
import pytest

import blocks
from blocks.execute import compute
from blocks.grid import Grid
from blocks.transforms import DisplacementField
from fidopt import corpus
from fidopt.errors import InputError
from fidopt.images.preview import BOTH, FOLD, MADE, TRUE, WRONG, views
from fidopt.runner.previews import draw, draw_or_say, ground, registration
from fidopt.scoring.field import zero_field
from fidopt.scoring.outputs import Output, empty_labels
from tests.scoring import made

REGISTRATION = ["after", "before", "contours", "jacobian", "landmarks", "warped"]


def field_of(grid: Grid, *shift: float) -> DisplacementField:
    vectors = np.zeros((grid.ndim, *grid.shape), np.float32)
    vectors += np.array(shift, np.float32).reshape(-1, *(1,) * grid.ndim)
    return DisplacementField(grid, vectors)


def points(case_grid: Grid, shift: tuple[float, ...]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    fixed = case_grid.world(random.uniform(2, np.array(case_grid.shape) - 3, (60, case_grid.ndim)))
    return {"fixed_landmarks": fixed, "moving_landmarks": fixed + np.array(shift)}


def drawn(folder):
    return {path.stem: iio.imread(path) for path in sorted(folder.iterdir())}


def pixels(picture, colour, *, below: int = 30, legend: int = 60):
    """Count the pixels of a colour between the title and the legend."""
    return int((picture[below:-legend] == np.array(colour, np.uint8)).all(axis=-1).sum())


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_registration_has_all_its_pictures_twice_the_same(ndim, make_case, grids, tmp_path):
    shift = (2.0, -1.5, 1.0)[:ndim]
    grid = grids(ndim)[0]
    case = make_case(ndim, shift=shift, points=points(grid, shift))
    draw(case, field_of(grid, *shift), tmp_path / "one")
    draw(case, field_of(grid, *shift), tmp_path / "two")
    assert sorted(path.stem for path in (tmp_path / "one").iterdir()) == REGISTRATION
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
        assert max(iio.imread(path).shape[:2]) <= 1400
        assert path.stat().st_size < 1 << 20


def test_contours_meet_where_the_field_is_right_and_part_where_it_is_not(make_case, grids, tmp_path):
    shift = (3.0, -2.0, 1.0)
    grid = grids(3)[0]
    # On black: the image of such a case is white itself in places.
    case = make_case(shift=shift, images=False)
    counts = {}
    for name, field in {"right": field_of(grid, *shift), "zero": zero_field(grid)}.items():
        draw(case, field, tmp_path / name)
        picture = drawn(tmp_path / name)["contours"]
        counts[name] = {colour: pixels(picture, colour) for colour in (TRUE, MADE, BOTH)}
    assert counts["right"][BOTH] > 2 * (counts["right"][TRUE] + counts["right"][MADE])
    assert counts["zero"][TRUE] > counts["right"][TRUE]
    assert counts["zero"][MADE] > counts["right"][MADE]
    assert counts["zero"][BOTH] < counts["right"][BOTH] / 2


def test_labels_that_are_not_scored_have_no_contour(make_case, grids, tmp_path, truth):
    grid = grids(3)[0]
    labels = truth(grid, np.zeros(3))
    labels[0:3, 0:4, 0:4] = 9
    case = make_case(maps={"fixed_labels": labels, "moving_labels": truth(grids(3)[1], np.zeros(3))})
    draw(case, zero_field(grid), tmp_path / "p")
    plain = make_case(name="case02")
    draw(plain, zero_field(grid), tmp_path / "q")
    one, other = (drawn(tmp_path / name)["contours"] for name in ("p", "q"))
    assert pixels(one, TRUE) == pixels(other, TRUE)


def test_folds_are_marked_and_counted(make_case, grids, tmp_path):
    grid = grids(3)[0]
    case = make_case()
    draw(case, zero_field(grid), tmp_path / "none")
    assert pixels(drawn(tmp_path / "none")["jacobian"], FOLD, legend=110) == 0
    vectors = np.zeros((3, *grid.shape), np.float32)
    # One voxel is thrown across its neighbours: the planes go through it and it is seen in all of them.
    vectors[0, 7, 10, 9] = 40.0
    draw(case, DisplacementField(grid, vectors), tmp_path / "one")
    picture = drawn(tmp_path / "one")["jacobian"]
    assert pixels(picture, FOLD, legend=110) > 100


def test_without_folds_the_determinant_is_shown_where_the_labels_are(make_case, grids, tmp_path):
    grid = grids(3)[0]
    case = make_case()
    # The corner of the image, where no label lies, shrinks most.
    vectors = np.zeros((3, *grid.shape), np.float32)
    vectors[0, 0, 0, 0] = 0.4 * grid.spacing[-1]
    draw(case, DisplacementField(grid, vectors), tmp_path / "field")
    picture = drawn(tmp_path / "field")["jacobian"]
    assert pixels(picture, FOLD, legend=110) == 0
    assert pixels(picture, (90, 90, 90), legend=110) > 100


def test_a_field_too_large_for_a_picture_is_read_at_every_second_voxel(make_case, grids, tmp_path, monkeypatch):
    monkeypatch.setattr(registration, "FIELD_VOXELS", 1000)
    grid = grids(3)[0]
    whole = field_of(grid, 1.0, 2.0, 3.0)
    vectors, thin, step = registration._thinned(whole)
    assert step == 2
    assert vectors.shape == (3, 8, 11, 9)
    assert thin.spacing == tuple(2 * s for s in grid.spacing)
    assert np.allclose(thin.world((1, 2, 3)), grid.world((2, 4, 6)))
    draw(make_case(), whole, tmp_path / "p")
    assert (tmp_path / "p" / "jacobian.png").is_file()


def test_landmarks_show_what_is_missed_and_only_that(make_case, grids, tmp_path):
    shift = (4.0, 0.0, 0.0)
    grid = grids(3)[0]
    case = make_case(shift=shift, points=points(grid, shift))
    draw(case, field_of(grid, *shift), tmp_path / "right")
    draw(case, field_of(grid, 0.0, 4.0, 0.0), tmp_path / "wrong")
    right, wrong = (drawn(tmp_path / name)["landmarks"] for name in ("right", "wrong"))
    assert pixels(right, WRONG) == 0
    assert pixels(wrong, WRONG) > 20


def test_every_landmark_of_a_plane_is_drawn(make_case, grids, tmp_path):
    grid = grids(2, 10)[0]
    index = np.array([[y, x] for y in range(10, 200, 25) for x in range(10, 170, 25)], float)
    fixed = grid.world(index)
    case = make_case(2, fine=10, points={"fixed_landmarks": fixed, "moving_landmarks": fixed}, maps={}, images=True)
    draw(case, zero_field(grid), tmp_path / "p")
    picture = drawn(tmp_path / "p")["landmarks"]
    (view,) = views(grid, side=768)
    white = (picture == 255).all(axis=-1)
    # Below the title, above the legend.
    rows, columns = np.nonzero(white[42 : 42 + view.shape[0]])
    # The dots at the four corners of the lattice are as far apart as the corners are.
    spread = np.ptp(view.pixels(fixed), axis=0)
    assert np.ptp(columns) == pytest.approx(spread[0], abs=4)
    assert np.ptp(rows) == pytest.approx(spread[1], abs=4)


def test_other_sets_have_pictures_of_their_own_and_images_are_not_needed(make_case, grids, tmp_path, truth):
    grid, other = grids(3)
    still, moved = truth(grid, np.zeros(3)), truth(other, np.zeros(3))
    maps = {"fixed_labels_organs": still, "moving_labels_organs": moved}
    sets = {f"{side}_landmarks_{name}": np.zeros((1, 3)) for side in ("fixed", "moving") for name in ("a", "b")}
    case = make_case(images=False, maps=maps, points=sets)
    draw(case, zero_field(grid), tmp_path / "p")
    names = sorted(path.stem for path in (tmp_path / "p").iterdir())
    assert names == ["contours_organs", "jacobian", "landmarks_a", "landmarks_b"]


def test_pictures_that_were_there_are_replaced(make_case, grids, tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "old.png").write_bytes(b"")
    draw(make_case(), zero_field(grids(3)[0]), folder)
    assert not (folder / "old.png").exists()


def test_what_cannot_be_drawn_is_said_and_stops_nothing(make_case, grids, tmp_path):
    case = make_case(points={"fixed_landmarks": np.zeros((2, 3)), "moving_landmarks": np.zeros((3, 3))})
    with pytest.raises(InputError):
        draw(case, zero_field(grids(3)[0]), tmp_path / "p")
    told: list[str] = []
    draw_or_say(case, zero_field(grids(3)[0]), tmp_path / "p", say=told.append)
    (message,) = told
    assert message.startswith("tiny/case01: no pictures: ")


def case_of(folder, task: str, **changes) -> corpus.Case:
    from fidopt import resources

    made.describe(folder / "share", task, **changes)
    roots = resources.roots(share=folder / "share", corpus=folder / "corpus")
    (folder / "corpus" / "made" / "one").mkdir(parents=True, exist_ok=True)
    return corpus.case(corpus.dataset("made", roots), "one", roots)


def test_wrong_voxels_of_a_segmentation_are_seen(tmp_path):
    case = case_of(tmp_path, "segmentation")
    names = [int(label) for label in made.LABELS]
    truth = np.zeros(made.GRID.shape, np.uint8)
    truth[2:6, 2:6, 2:6] = names[0]
    made.store(case.folder / "image.ome.zarr", np.random.default_rng(0).random(made.GRID.shape).astype(np.float32))
    made.store(case.truth / "labels.ome.zarr", truth, labels=True)
    draw(case, Output(compute(blocks.open_image(case.truth / "labels.ome.zarr"))), tmp_path / "same")
    same = drawn(tmp_path / "same")
    assert sorted(same) == ["contours", "wrong"]
    assert [pixels(same["wrong"], colour) for colour in (TRUE, MADE, WRONG)] == [0, 0, 0]
    assert pixels(same["contours"], BOTH) > 50
    draw(case, empty_labels(case), tmp_path / "empty")
    empty = drawn(tmp_path / "empty")["wrong"]
    assert pixels(empty, TRUE) > 300
    assert [pixels(empty, colour) for colour in (MADE, WRONG)] == [0, 0]
    other = truth.copy()
    other[3, 3, 3], other[3, 4, 6] = names[1], names[1]
    labels = blocks.image_of(other, made.GRID, unit="px", kind="labels")
    draw(case, Output(labels), tmp_path / "other")
    seen = drawn(tmp_path / "other")["wrong"]
    assert pixels(seen, WRONG) > 20
    assert pixels(seen, MADE) > 20


@pytest.mark.parametrize("source", [True, False])
def test_a_synthesis_stands_beside_the_truth(source, tmp_path):
    case = case_of(tmp_path, "synthesis")
    random = np.random.default_rng(0)
    target = np.zeros(made.GRID.shape, np.float32)
    target[2:-2, 2:-2, 2:-2] = 50 + random.random(target[2:-2, 2:-2, 2:-2].shape)
    if source:
        made.store(case.folder / "source.ome.zarr", target[::-1].copy())
    made.store(case.truth / "target.ome.zarr", target)
    draw(case, Output(blocks.image_of(target + 5, made.GRID, unit="px")), tmp_path / "p")
    (picture,) = drawn(tmp_path / "p").values()
    draw(case, Output(blocks.image_of(target, made.GRID, unit="px")), tmp_path / "q")
    (same,) = drawn(tmp_path / "q").values()
    # Where nothing differs, the last column is black to its end.
    assert (same[30:-80, -200:].max(axis=-1) > 200).sum() < (picture[30:-80, -200:].max(axis=-1) > 200).sum()
    assert picture.shape[1] <= 4 * 320 + 60


@pytest.mark.parametrize("ndim", [2, 3])
def test_of_a_large_case_a_coarse_level_is_drawn(ndim, make_case, grids, tmp_path, monkeypatch):
    # As fine as gives the stores a second level.
    fine = {2: 40, 3: 4}[ndim]
    monkeypatch.setattr(ground, "VOXELS", {2: 512, 3: 60})
    shift = (2.0, -1.5, 1.0)[:ndim]
    grid = grids(ndim, fine)[0]
    case = make_case(ndim, shift=shift, fine=fine, large=True, points=points(grid, shift))
    drawn_on = ground.Ground(case)
    assert drawn_on.level >= 1
    assert max(drawn_on.grid.shape) <= ground.VOXELS[ndim]
    coarse = Grid.of((12,) * ndim, spacing=(6.0,) * ndim, origin=tuple(grid.world((0,) * ndim) - 30))
    vectors = field_of(coarse, *shift).vectors
    draw(case, DisplacementField(coarse, da.from_array(vectors, chunks=-1)), tmp_path / "p")
    pictures = drawn(tmp_path / "p")
    assert sorted(pictures) == REGISTRATION
    assert max(size for picture in pictures.values() for size in picture.shape[:2]) <= 1400
