"""The shipped methods of the package index, run on pairs of known motion; and the verdicts that they ship with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blocks.grid import Grid
from fidopt import resources
from fidopt.check import keeping
from fidopt.check.scenes import scenes
from fidopt.check.session import order_of
from fidopt.check.synthetic import build_case, check_scene, modality_for
from fidopt.corpus import Case
from fidopt.errors import MissingError
from fidopt.resources import Roots, packaged_share
from fidopt.runner import methods
from fidopt.runner.case import Order, run_case
from fidopt.scoring.field import read_scored_field

#: The fixed and the moving image on two grids, and the colour image: what an adapter gets wrong shows there.
PAIRS = {scene.name: scene for scene in scenes((2, 3)) if scene.name != "one_grid"}
QUICK = ("demons", "niftyreg", "greedy", "dipy_syn", "ants", "convexadam_mind")
#: Methods that were run where they were written, and ship with a verdict on every pair; the others say in their notes
#: that they were not run.
CHECKED = ("identity", *QUICK, "elastix", "fireants")


@pytest.fixture(scope="module")
def roots(tmp_path_factory) -> Roots:
    root = tmp_path_factory.mktemp("work")
    return Roots((packaged_share(),), root, root, root, root / "envs")


def check(name: str, pair: str, roots: Roots, folder):
    chosen = methods.find(name, roots)
    if PAIRS[pair].ndim not in chosen.method.dimensions:
        pytest.skip(f"{name} does not take {PAIRS[pair].ndim}D")
    return check_scene(ready(name, roots), PAIRS[pair], folder / pair, log=print)


def ready(name: str, roots: Roots) -> Order:
    try:
        return order_of(methods.find(name, roots), roots, print)
    except MissingError as error:
        pytest.skip(f"no package index: {error}")


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", QUICK)
def test_a_method_from_the_package_index_finds_a_known_motion(name, pair, roots, tmp_path):
    finding = check(name, pair, roots, tmp_path)
    assert finding.state == "right", finding


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["elastix", "fireants"])
def test_a_method_that_is_heavy_to_install_finds_a_known_motion(name, pair, roots, tmp_path):
    finding = check(name, pair, roots, tmp_path)
    assert finding.state == "right", finding


@pytest.mark.parametrize(
    ("name", "shape", "spacing"),
    [("greedy", (9, 40, 36), (1.5, 1.5, 7.5)), ("dipy_syn", (33, 35, 34), (2.0, 2.0, 2.0))],
)
def test_a_level_that_an_image_is_too_small_for_is_left_out(name, shape, spacing, roots, tmp_path):
    scene = PAIRS["two_grids"]
    grid = Grid.of(shape, spacing=spacing, origin=scene.fixed.origin, direction=scene.fixed.direction)
    small = replace(scene, fixed=grid, moving=grid)
    order = ready(name, roots)
    vectors = field(order, build_case(small, modality_for(order), tmp_path / scene.name))
    inside = vectors[:, small.inside()].T
    assert np.linalg.norm(inside - scene.motion, axis=1).mean() < 0.5 * np.linalg.norm(scene.motion)


#: Threads of two runs whose fields are the same to the last bit: what each method's notes say of it.
SAME = [(name, (1, 1)) for name in (*QUICK, "elastix", "fireants")]
SAME += [(name, (1, 2)) for name in ("demons", "niftyreg", "greedy")] + [("ants", (2, 2))]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "threads"), SAME)
def test_two_runs_of_a_method_give_the_same_field(name, threads, roots, tmp_path):
    scene = PAIRS["two_grids"]
    order = ready(name, roots)
    case = build_case(scene, modality_for(order), tmp_path / scene.name)
    one, two = (field(replace(order, threads=number), case) for number in threads)
    off = np.linalg.norm(one - two, axis=0)
    assert not off.any(), f"they differ by {off.max():.3g}, {off.mean():.3g} in the mean"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ants_on_other_threads_stays_within_the_spread_of_its_notes(roots, tmp_path):
    scene = PAIRS["two_grids"]
    order = ready("ants", roots)
    case = build_case(scene, modality_for(order), tmp_path / scene.name)
    one, two = (field(replace(order, threads=number), case) for number in (1, 2))
    # Sums of one thread and of two are rounded otherwise, and hundreds of iterations carry that on.
    assert np.linalg.norm(one - two, axis=0).max() < 0.05


def field(order: Order, case: Case) -> np.ndarray:
    with run_case(order, case) as result:
        assert result.field is not None, result.log_tail
        return np.asarray(read_scored_field(result.field, case).vectors[(slice(None),)])


@pytest.mark.parametrize("name", CHECKED)
def test_the_verdicts_beside_a_method_are_its_own_and_good(name):
    chosen = methods.find(name, resources.roots())
    kept = keeping.read(chosen)
    assert kept is not None, f"{name} has changed since it was checked; run: fidopt check {name}"
    assert set(kept.pairs) == {scene.name for scene in scenes(chosen.method.dimensions)}
    assert all(verdict.passed for verdict in kept.pairs.values())


def test_a_method_that_was_not_run_says_so():
    for chosen in methods.known(resources.roots()):
        assert (chosen.folder / "NOTES.md").is_file()
        if chosen.method.name not in CHECKED and "registration" in chosen.method.tasks:
            assert "**Not run here" in (chosen.folder / "NOTES.md").read_text(), chosen.method.name
