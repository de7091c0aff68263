"""A volume of several shards, a transform of two kinds, and the digest that every way of computing must give."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt.cli import main
from fidopt.images.digest import digest

README = Path(__file__).parents[2] / "deploy" / "README.md"


@dataclass(frozen=True)
class Work:
    """Files of a warp, and what it gives on this process's threads."""

    folder: Path
    expected: str

    def words(self, out):
        """Return the command that warps into a store of the folder."""
        transforms = [str(self.folder / name) for name in ("turn.tfm", "bend.tfm")]
        fixed = str(self.folder / "fixed.ome.zarr")
        return ["warp", str(self.folder / "moving.ome.zarr"), *transforms, str(self.folder / out), "--like", fixed]

    def digest(self, out):
        """Return the digest of a store of the folder."""
        return digest(self.folder / out)


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """A volume of 3 x 300 x 300 voxels and its warp: four shards at the finest level, one at the next."""
    folder = tmp_path_factory.mktemp("work")
    shape = (3, 300, 300)
    z, y, x = np.indices(shape)
    voxels = ((x * 7 + y * 13 + z * 101) % 251).astype(np.uint8)
    write_image(folder / "moving.ome.zarr", image_of(voxels, Grid.of(shape)))
    write_image(folder / "fixed.ome.zarr", image_of(voxels, Grid.of(shape, spacing=(0.9, 1.1, 1.0))))
    sitk.WriteTransform(sitk.Euler3DTransform((150, 150, 1), 0.0, 0.0, 0.3, (4, -6, 0.5)), str(folder / "turn.tfm"))
    bend = sitk.BSplineTransformInitializer(sitk.Image(300, 300, 3, sitk.sitkUInt8), [4, 4, 1])
    random = np.random.default_rng(7)
    bend.SetParameters((random.normal(size=len(bend.GetParameters())) * 3).tolist())
    sitk.WriteTransform(bend, str(folder / "bend.tfm"))
    made = Work(folder, "")
    assert main(made.words("embedded.ome.zarr")) == 0
    assert len(list((folder / "embedded.ome.zarr" / "0" / "c").rglob("*"))) > 4
    return Work(folder, digest(folder / "embedded.ome.zarr"))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder of ca.pem, cert.pem and key.pem, made as deploy/README.md says."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl: apt-get install openssl")
    folder = tmp_path_factory.mktemp("tls")
    commands = [line for line in README.read_text().splitlines() if line.startswith("    openssl ")]
    assert len(commands) == 3
    for command in commands:
        subprocess.run(shlex.split(command), cwd=folder, check=True, capture_output=True)
    return folder
