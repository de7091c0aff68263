"""Who keeps the seed of a known deformation: the archive, else this machine; never the repository."""

from __future__ import annotations

import json
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from blocks.grid import Grid
from fidopt import building, results
from fidopt.building.deformation import draw
from fidopt.building.folding import STEEPEST, refuse_folding
from fidopt.building.recipe import (
    LEAST_SECRET,
    MOST_STEEP,
    Recipe,
    is_drawn,
    is_own,
    own_path,
    provide_recipe,
    read_recipe,
    recipe_path,
)
from fidopt.cli import main
from fidopt.descriptors.base import parse
from fidopt.errors import DescriptorError, InputError
from fidopt.images.digest import digest
from tests.corpus.conftest import nifti

TRUTH = {"grade": "synthetic", "by": "b", "checked": "c", "limits": "l", "labels": {"3": "bright"}}
MR = {"fixed": "mr", "moving": "mr"}
DRAWN = {
    "moving.ome.zarr",
    "truth/moving_labels.ome.zarr",
    "truth/fixed_landmarks.csv",
    "truth/moving_landmarks.csv",
    "truth/deformation.tfm",
}


@pytest.fixture
def seedless(make, pair, tmp_path):
    """A dataset with a known deformation whose archive keeps no seed, and folders of a machine of its own."""
    files = {name: data for name, data in pair.items() if name.startswith("one")}
    dataset, roots = make(files, truth=TRUTH, warp=True)
    return dataset, replace(roots, private=tmp_path / "private")


def test_a_seed_is_drawn_once_and_kept_from_others(seedless):
    dataset, roots = seedless
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: provide_recipe(dataset, roots), range(8)))
    path = own_path(dataset, roots)
    before = path.read_bytes()
    provide_recipe(dataset, roots)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_recipe(path, dataset).seed >= LEAST_SECRET
    assert is_own(dataset, roots)
    assert not list(roots.archives.rglob("warp.json"))


def test_every_build_of_a_machine_gives_the_same_and_another_machine_gives_another(seedless, tmp_path):
    dataset, roots = seedless
    first = building.build(dataset, roots=roots)[0].checksums
    again = building.build(dataset, roots=replace(roots, corpus=tmp_path / "again"))[0].checksums
    assert again == first
    other = replace(roots, corpus=tmp_path / "other", private=tmp_path / "elsewhere")
    theirs = building.build(dataset, roots=other)[0].checksums
    assert {entry for entry in first if theirs[entry] != first[entry]} == DRAWN
    # The seed that is kept with the archive comes first, and makes both machines' the same.
    kept = roots.archives / "tiny" / "private" / "warp.json"
    kept.parent.mkdir()
    shutil.copyfile(own_path(dataset, roots), kept)
    assert recipe_path(dataset, other) == kept
    assert not is_own(dataset, other)
    assert building.build(dataset, roots=other, overwrite=True)[0].checksums == first


def test_what_one_machine_alone_can_draw_is_not_recorded_and_is_verified_all_the_same(seedless, tmp_path):
    dataset, roots = seedless
    (one,) = building.build(dataset, roots=roots)
    path = building.record(dataset, {"one": one.checksums}, roots=roots)
    document = json.loads(path.read_text())
    assert set(document["cases"]["one"]) == set(one.checksums) - DRAWN
    assert set(document["contents"]["one"]) == {"fixed.ome.zarr", "truth/fixed_labels.ome.zarr"}
    other = replace(roots, corpus=tmp_path / "other", private=tmp_path / "elsewhere")
    (theirs,) = building.build(dataset, roots=other)
    assert theirs.recorded == "match"
    assert building.verify(dataset, roots=other) == []
    landmarks = other.corpus / "tiny" / "one" / "truth" / "moving_landmarks.csv"
    landmarks.write_text(landmarks.read_text() + "1.0,2.0,3.0\n")
    assert [(d.path, d.problem) for d in building.verify(dataset, roots=other)] == [
        ("truth/moving_landmarks.csv", "differs")
    ]
    # A copy that came without the notes of its build: nothing tells whether what was drawn is whole.
    shutil.rmtree(roots.corpus / "tiny" / ".built")
    assert {(d.path, d.problem) for d in building.verify(dataset, roots=roots)} == {(e, "unknown") for e in DRAWN}
    # Kept with the archive, the seed makes all of it recordable.
    (roots.archives / "tiny" / "private").mkdir()
    shutil.copyfile(own_path(dataset, roots), roots.archives / "tiny" / "private" / "warp.json")
    (whole,) = building.build(dataset, roots=roots, overwrite=True)
    building.record(dataset, {"one": whole.checksums}, roots=roots)
    assert json.loads(path.read_text())["cases"]["one"] == whole.checksums == one.checksums
    assert theirs.checksums.keys() == whole.checksums.keys()
    assert building.build(dataset, roots=replace(other, archives=roots.archives), overwrite=True)[0].recorded == "match"


def test_rows_of_two_seeds_of_a_large_dataset_are_told_apart_though_its_stores_are_not_read_again(
    make, tmp_path, monkeypatch
):
    image = nifti(np.add.outer(np.hypot(*np.mgrid[-1:1:41j, -1:1:37j]), np.linspace(0, 1, 29)))
    files = {f"one-{side}.nii.gz": image for side in ("fixed", "moving")}
    dataset, roots = make(files, truth=TRUTH | {"labels": {}}, warp=True, large=True, modalities=MR)
    roots = replace(roots, private=tmp_path / "private")
    other = replace(roots, corpus=tmp_path / "other", private=tmp_path / "elsewhere")
    (one,) = building.build(dataset, roots=roots)
    building.record(dataset, {"one": one.checksums}, roots=roots)
    (two,) = building.build(dataset, roots=other)
    assert one.checksums["fixed.ome.zarr"] == two.checksums["fixed.ome.zarr"]
    digests = [results.corpus_digest(dataset, where) for where in (roots, other)]
    assert digests[0] != digests[1]
    assert results.recorded_digest(dataset, roots) is None
    read = []
    monkeypatch.setattr(results, "digest", lambda path: read.append(path.name) or digest(path))
    assert results.corpus_digest(dataset, roots) == digests[0]
    assert sorted(read) == ["deformation.tfm", "fixed_landmarks.csv", "moving_landmarks.csv"]


def test_the_commands_say_whose_seed_it_is(seedless, monkeypatch, capsys):
    _, roots = seedless
    monkeypatch.setenv("FIDOPT_PRIVATE", str(roots.private))
    where = ["--share", roots.share[0], "--corpus", roots.corpus, "--archives", roots.archives]
    assert main(["build", "tiny", "--record", *map(str, where)]) == 0
    printed = capsys.readouterr()
    kept = roots.private / "tiny" / "warp.json"
    assert f"drawn from a seed that this machine alone has, {kept}" in printed.err
    seed = str(json.loads(kept.read_text())["seed"])
    assert seed not in printed.err + printed.out
    assert main(["verify", "tiny", *map(str, where)]) == 0
    assert "as recorded with the dataset, and what a seed of this machine draws as built here" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_seed_alone_is_a_recipe_and_its_strength_is_drawn_to_the_size_of_the_image():
    grids = [Grid.of((90, 70), spacing=(0.5, 2.0)), Grid.of((21, 33, 28), spacing=(1.1, 0.9, 2.3))]
    recipe = Recipe(seed=5, border="free")
    for grid in grids:
        shortest = min(n * step for n, step in zip(grid.shape, grid.spacing[::-1], strict=True))
        seen = set()
        for case in range(10):
            deformation = draw(recipe, grid, name=f"d:{case}")
            (distance,) = set(deformation.transform.grid.spacing)
            reach = np.abs(deformation.transform.coefficients).max()
            assert 0.3 * shortest <= distance <= 0.4 * shortest
            assert reach <= 0.8 * MOST_STEEP * distance / STEEPEST[grid.ndim]
            assert refuse_folding(deformation.transform, grid) > deformation.least_determinant > 0
            seen.add(distance)
        assert len(seen) == 10
        twice = [draw(recipe, grid, name="d:1").transform.coefficients for _ in range(2)]
        np.testing.assert_array_equal(*twice)


def test_half_a_strength_is_refused_and_so_is_a_short_seed_of_one_s_own(seedless):
    dataset, roots = seedless
    with pytest.raises(DescriptorError, match="reach: must be there, since distance is"):
        parse(Recipe, '{"seed": 1, "distance": 2.0}', where="warp.json")
    with pytest.raises(DescriptorError, match="distance: must be there, since reach is"):
        parse(Recipe, '{"seed": 1, "reach": 2.0}', where="warp.json")
    path = own_path(dataset, roots)
    path.parent.mkdir(parents=True)
    path.write_text('{"seed": 12}')
    with pytest.raises(InputError, match="must have 15 digits or more, got 2"):
        building.build(dataset, roots=roots)


def test_what_is_drawn_is_told_from_what_every_build_has():
    assert all(map(is_drawn, DRAWN))
    assert is_drawn("moving_mask.ome.zarr")
    assert is_drawn("truth/moving_landmarks_keypoints.csv")
    for entry in ("fixed.ome.zarr", "truth/fixed_labels_cells.ome.zarr", "truth/fixed_landmarks_keypoints.csv"):
        assert not is_drawn(entry)
