"""The shipped methods of the package index, run on pairs of known motion; and the verdicts that they ship with."""

from __future__ import annotations

import pytest

from fidopt import resources
from fidopt.check import keeping
from fidopt.check.scenes import scenes
from fidopt.check.session import order_of
from fidopt.check.synthetic import check_scene
from fidopt.errors import MissingError
from fidopt.resources import Roots, packaged_share
from fidopt.runner import methods

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
    try:
        order = order_of(chosen, roots, print)
    except MissingError as error:
        pytest.skip(f"no package index: {error}")
    return check_scene(order, PAIRS[pair], folder / pair, log=print)


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
