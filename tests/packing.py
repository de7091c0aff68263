"""Archives made for tests, sound and unsound, and what an archive that is refused must leave behind: nothing."""

from __future__ import annotations

import io
import tarfile
import zipfile

import numpy as np
import pytest

from fidopt.building import unpack
from fidopt.errors import InputError


def noise(size, seed=0):
    """Return bytes that no compression makes shorter, the same every time."""
    return np.random.default_rng(seed).bytes(size)


WRITERS = {"zip": None, "tar": "w:", "tar.gz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}


def tar(path, members, *, mode="w:", form=tarfile.PAX_FORMAT):
    """Write a tar of (name, bytes or a dict of TarInfo's attributes)."""
    with tarfile.open(path, mode, format=form) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                for key, value in content.items():
                    setattr(info, key, value)
                archive.addfile(info)
    return path


def zipped(path, members, *, method=zipfile.ZIP_DEFLATED):
    """Write a zip of (name, bytes) or (name, (mode, bytes))."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            mode, data = content if isinstance(content, tuple) else (0, content)
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return path


def packed(folder, kind, members):
    path = folder / f"made.{kind}"
    return zipped(path, members) if kind == "zip" else tar(path, members, mode=WRITERS[kind])


def everything(folder):
    """Return every path below a folder, the hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def refused(path, *, match, error=InputError, **limits):
    """Hold that an archive is refused and that nothing is there that was not there before."""
    top = path.parents[1]
    before = everything(top)
    with pytest.raises(error, match=match) as caught:
        unpack(path, path.parent / "deep" / "out", **limits)
    assert everything(top) == before
    assert "\n" not in str(caught.value)
