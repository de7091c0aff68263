"""The method that every board is compared with, held to the contract's file; and methods that are refused."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest

from fidopt.check.scenes import scenes
from fidopt.check.session import order_of
from fidopt.check.synthetic import build_case
from fidopt.errors import UsageError
from fidopt.resources import Roots, packaged_share
from fidopt.runner import methods
from fidopt.runner.case import run_case

SCENES = {scene.name: scene for scene in scenes((2, 3))}


@pytest.mark.parametrize("name", SCENES)
def test_identity_writes_zeros_on_the_fixed_grid(name, tmp_path):
    scene = SCENES[name]
    roots = Roots((packaged_share(),), tmp_path, tmp_path, tmp_path, tmp_path / "envs")
    order = order_of(methods.find("identity", roots), roots, print)
    case = build_case(scene, "mr", tmp_path / "pair" / name)
    with run_case(order, case) as result:
        assert result.field is not None, result.log_tail
        image = nibabel.load(result.field)
        values = np.asarray(image.dataobj)
    size = scene.fixed.shape[::-1]
    assert image.header["dim"][:6].tolist() == [5, *size, *[1] * (4 - len(size)), len(size)]
    assert (int(image.header["intent_code"]), int(image.header["datatype"])) == (1007, 16)
    lps = (np.diag([-1, -1, 1, 1]) @ image.affine)[: scene.ndim]
    np.testing.assert_allclose(lps[:, : scene.ndim], scene.fixed.matrix, atol=1e-5)
    np.testing.assert_allclose(lps[:, 3], scene.fixed.origin, atol=1e-4)
    assert not values.any()


def test_a_method_without_its_script_or_with_half_a_name_is_refused(world):
    folder = world.method("still", "true")
    with pytest.raises(UsageError, match="still has no variant ''"):
        methods.find("still@", world.roots)
    (folder / "run.sh").unlink()
    with pytest.raises(UsageError, match=r"still has no run\.sh"):
        methods.refuse_unfit(methods.find("still", world.roots), world.dataset())
