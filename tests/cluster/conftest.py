"""A volume of several shards, a transform of two kinds, and the digest that every way of computing must give."""

from __future__ import annotations

import datetime
import ipaddress
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
    """A folder of ca.pem, cert.pem and key.pem for this machine's loopback."""
    x509 = pytest.importorskip("cryptography.x509", reason="pip install cryptography (it comes with fidopt[cluster])")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def certificate(subject, key, issuer, signer, *, authority):
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateBuilder(name(issuer), name(subject), key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
            now + datetime.timedelta(days=1)
        )
        made = made.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = made.add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
        return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    folder = tmp_path_factory.mktemp("tls")
    root, mine = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (folder / "ca.pem").write_bytes(certificate("root", root, "root", root, authority=True))
    (folder / "cert.pem").write_bytes(certificate("fidopt", mine, "root", root, authority=False))
    text = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(mine.private_bytes(*text))
    return folder
