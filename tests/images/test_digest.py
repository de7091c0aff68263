import hashlib

import pytest

from fidopt.errors import InputError
from fidopt.images.digest import digest


def test_a_file_s_digest_is_its_sha256(tmp_path):
    (tmp_path / "f.csv").write_bytes(b"x,y\n1,2\n")
    assert digest(tmp_path / "f.csv") == "sha256:" + hashlib.sha256(b"x,y\n1,2\n").hexdigest()


def test_a_store_s_digest_is_that_of_its_sorted_lines(tmp_path):
    (tmp_path / "0" / "c").mkdir(parents=True)
    (tmp_path / "zarr.json").write_bytes(b"{}")
    (tmp_path / "0" / "c" / "1").write_bytes(b"voxels")
    lines = [
        f"{hashlib.sha256(b'{}').hexdigest()}  zarr.json\n",
        f"{hashlib.sha256(b'voxels').hexdigest()}  0/c/1\n",
    ]
    assert digest(tmp_path) == "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def test_one_flipped_bit_one_renamed_or_one_missing_file_changes_it(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"0")
    seen = {digest(tmp_path)}
    (tmp_path / "a").write_bytes(b"1")
    seen.add(digest(tmp_path))
    (tmp_path / "a").rename(tmp_path / "c")
    seen.add(digest(tmp_path))
    (tmp_path / "c").unlink()
    seen.add(digest(tmp_path))
    assert len(seen) == 4


def test_what_is_not_there_has_no_digest(tmp_path):
    with pytest.raises(InputError, match="there is no such file or store"):
        digest(tmp_path / "nothing")
