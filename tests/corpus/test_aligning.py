"""A dataset aligned from its prepared images, its truth out of reach, and built from what was stored."""

import json
import sys

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks import open_image
from blocks.image import grid_of
from fidopt import building, corpus, resources
from fidopt.alignment import choice
from fidopt.alignment.elastix import Registered
from fidopt.alignment.headers import read_alignment, stored_alignment
from fidopt.alignment.motions import Motion
from fidopt.alignment.record import AlignmentRecord, record_beside
from fidopt.building import aligning
from fidopt.building.records import read_record
from fidopt.descriptors.base import load
from fidopt.errors import InputError, MissingError, OutputExistsError, UsageError
from fidopt.images.landmarks import read_landmarks
from tests.corpus.test_large import large, random, volume  # noqa: F401 - fixtures

TRUTH = {"grade": "expert", "by": "t", "checked": "t", "limits": "t", "labels": {"3": "x"}}
#: Gives the images, and a ``truth`` that is a link to itself: whoever follows it fails, root too.
HIDDEN = """
import shutil, sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    folder = Path(target) / case
    folder.mkdir(parents=True)
    for side in ("fixed", "moving"):
        shutil.copyfile(Path(source) / f"{case}-{side}.nii.gz", folder / f"{side}.nii.gz")
    (folder / "truth").symlink_to("truth")
"""


@pytest.fixture
def dataset(make, pair):
    """Return a function that makes the dataset of two cases with a mode."""

    def _dataset(mode="image-centres", **changes):
        return make(pair, alignment={"mode": mode}, truth=TRUTH, **changes)

    return _dataset


def test_a_case_is_built_with_its_moving_side_where_the_stored_transform_puts_it(dataset):
    plain, roots = dataset("as-delivered")
    building.build(plain, roots=roots)
    before = corpus.case(plain, "one", roots)
    images = {name: open_image(getattr(before, name)) for name in ("fixed", "moving")}
    values, grids = {k: v.values for k, v in images.items()}, {k: grid_of(v) for k, v in images.items()}
    labels = open_image(before.label_sets()[""][1]).values
    points = read_landmarks(before.landmark_sets()[""][1], ndim=3)

    described, roots = dataset()
    with pytest.raises(MissingError, match=r"fidopt align tiny one$"):
        building.build(described, ["one"], roots=roots, overwrite=True)
    (one, _) = aligning.align_cases(described, mode="image-centres", roots=roots)
    transform = read_alignment(one.path)
    with pytest.raises(OutputExistsError, match="from other inputs"):
        building.build(described, roots=roots)
    building.build(described, roots=roots, overwrite=True)
    assert building.verify(described, roots=roots) == []
    after = corpus.case(described, "one", roots)
    moving = open_image(after.moving)
    np.testing.assert_array_equal(moving.values, values["moving"])
    np.testing.assert_array_equal(open_image(after.label_sets()[""][1]).values, labels)
    assert grid_of(open_image(after.fixed)) == grids["fixed"]
    middle = [(n - 1) / 2 for n in grid_of(moving).shape]
    fixed_middle = grids["fixed"].world([(n - 1) / 2 for n in grids["fixed"].shape])
    np.testing.assert_allclose(grid_of(moving).world(middle), fixed_middle, rtol=0, atol=1e-9)
    assert grid_of(open_image(after.label_sets()[""][1])) == grid_of(moving)
    moved = read_landmarks(after.landmark_sets()[""][1], ndim=3)
    np.testing.assert_allclose(transform.points(moved), points, rtol=0, atol=1e-9)
    assert read_record(described, "one", roots).alignment.startswith("sha256:")
    assert {b.done for b in building.build(described, roots=roots)} == {"kept"}
    one.path.write_text(Motion((1.0, 2.0, 3.0)).text())
    with pytest.raises(InputError, match=r"is not the transform that one\.json beside it tells of"):
        building.build(described, roots=roots)
    record_beside(one.path).unlink()
    with pytest.raises(OutputExistsError, match="one was built from other inputs"):
        building.build(described, roots=roots)
    assert building.build(described, ["two"], roots=roots)[0].done == "kept"


@pytest.fixture
def opened():
    """Give the paths that this process opens or lists during a test."""
    paths, watching = [], [True]

    def note(event, arguments):
        if watching and event in {"open", "os.scandir", "os.listdir"}:
            paths.append(str(arguments[0]))

    sys.addaudithook(note)  # which stays for good
    yield paths
    watching.clear()


def test_a_truth_that_nobody_can_open_is_not_missed(dataset, monkeypatch, opened, tmp_path):
    trap = tmp_path / "truth"
    trap.symlink_to("truth")
    for follow in (lambda: (trap / "fixed_labels.nii.gz").read_bytes(), lambda: list(trap.iterdir())):
        with pytest.raises(OSError, match="symbolic links"):
            follow()

    def register(fixed, moving, starts, *, kind):
        return [Registered(start, Motion(start.translation)) for start in starts], "test"

    monkeypatch.setattr(choice, "register", register)
    described, roots = dataset("elastix-rigid", prepare=HIDDEN)
    found = aligning.align_cases(described, mode="elastix-rigid", roots=roots)
    assert [one.done for one in found] == ["aligned", "aligned"]
    assert list(aligning.suggest(described, ["one"], roots=roots)) == ["one"]
    prepared = [path for path in opened if "fidopt-prepared" in path]
    assert any(path.endswith("moving.nii.gz") for path in prepared)
    assert not [path for path in prepared if "/truth" in path]


def test_a_transform_is_kept_until_something_it_depends_on_changes(dataset):
    described, roots = dataset()
    first = aligning.align_cases(described, ["one"], mode="image-centres", roots=roots)[0]
    bytes_, record = first.path.read_bytes(), first.path.with_suffix(".json").read_bytes()
    again = aligning.align_cases(described, mode="image-centres", roots=roots)
    assert [one.done for one in again] == ["kept", "aligned"]
    assert (
        aligning.align_cases(described, ["one"], mode="image-centres", roots=roots, overwrite=True)[0].done == "aligned"
    )
    assert (first.path.read_bytes(), first.path.with_suffix(".json").read_bytes()) == (bytes_, record)
    first.path.unlink()
    assert aligning.align_cases(described, ["one"], mode="image-centres", roots=roots)[0].done == "aligned"
    with pytest.raises(OutputExistsError, match="made as image-centres, or from other images"):
        aligning.align_cases(described, ["one"], mode="elastix-rigid", roots=roots)
    first.path.with_suffix(".json").unlink()
    with pytest.raises(OutputExistsError, match="by hand, or by another program"):
        aligning.align_cases(described, ["one"], mode="image-centres", roots=roots)
    assert json.loads(record)["winner"] == "image-centres"


def test_what_is_not_aligned_is_refused_in_a_sentence(dataset, make, pair):
    described, roots = dataset("as-delivered")
    with pytest.raises(UsageError, match="taken as delivered, which stores no transform"):
        aligning.align_cases(described, mode="as-delivered", roots=roots)
    described, roots = dataset(registration="rigid")
    with pytest.raises(UsageError, match="the rigid registration itself"):
        aligning.align_cases(described, mode="elastix-rigid", roots=roots)
    described, roots = make({k: v for k, v in pair.items() if "-moving.nii" not in k}, truth=TRUTH)
    with pytest.raises(InputError, match=r"^tiny/one: has no moving image"):
        aligning.align_cases(described, mode="image-centres", roots=roots)


def test_a_large_dataset_is_aligned_from_what_its_references_name_and_built(large, monkeypatch):  # noqa: F811
    seen = []

    def register(fixed, moving, starts, *, kind):
        seen.append((fixed.whole, moving.whole))
        return [Registered(start, Motion((2.0, 1.5, -1.0))) for start in starts], "test"

    monkeypatch.setattr(choice, "register", register)
    described, roots = large(alignment=sitk.TranslationTransform(3))
    with pytest.raises(OutputExistsError, match="by hand"):
        aligning.align_cases(described, mode="elastix-rigid", roots=roots)
    (one,) = aligning.align_cases(described, mode="elastix-rigid", roots=roots, overwrite=True)
    assert seen[0][0] == seen[0][1]
    building.build(described, roots=roots)
    case = corpus.case(described, "one", roots)
    fixed, moving = (grid_of(open_image(path)) for path in (case.fixed, case.moving))
    np.testing.assert_allclose(np.subtract(moving.origin, fixed.origin), (-2.0, -1.5, 1.0), atol=1e-9)
    assert one.record.offset == (2.0, 1.5, -1.0)


def test_the_transforms_that_ship_are_of_the_images_and_the_mode_that_their_dataset_names():
    roots = resources.roots()
    stored = sorted(resources.packaged_share().glob("datasets/*/alignment/*.tfm"))
    assert stored
    for path in stored:
        described = corpus.dataset(path.parents[1].name, roots)
        names = (*described.cases, *described.development)
        assert (
            aligning.made_from(described, described.alignment.mode, roots)
            == load(AlignmentRecord, record_beside(path)).made_from
        ), path
        assert all(corpus.alignment_path(described, name, roots).is_file() for name in names)
        assert (
            stored_alignment(described, path.stem, roots).transform.matrix
            == load(AlignmentRecord, record_beside(path)).matrix
        )
