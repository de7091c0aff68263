"""Members that no archive may have: each is named, and nothing is written."""

from __future__ import annotations

import stat
import tarfile
import zipfile

import pytest

from fidopt.building import unpack
from tests.packing import packed, refused, tar, zipped


@pytest.fixture
def place(tmp_path):
    """A folder inside one of the test's own, so that what lands outside the first is seen."""
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../outside.txt", r"the name '\.\./outside\.txt' leads out of the archive's folder by '\.\.'"),
        ("a/../../outside.txt", r"'a/\.\./\.\./outside\.txt' leads out"),
        ("a/..", r"'a/\.\.' leads out"),
        ("/tmp/outside.txt", "'/tmp/outside.txt' is absolute"),
        ("C:/outside.txt", "'C:/outside.txt' is absolute"),
        ("..\\outside.txt", "holds a backslash"),
        ("a\nb", "a character that no name has"),
    ],
)
def test_a_name_that_leads_out_is_refused(place, kind, name, match):
    refused(packed(place, kind, [("good.txt", b"good"), (name, b"bad")]), match=match)


def test_a_nul_in_a_zip_s_name_does_not_hide_the_rest_of_it(place):
    path = zipped(place / "made.zip", [("good.txtX../../bad", b"bad")])
    path.write_bytes(path.read_bytes().replace(b"good.txtX", b"good.txt\0"))
    refused(path, match=r"a character that no name has")


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    ("link", "match"),
    [
        ("/etc/passwd", "'way' is a link to the absolute place '/etc/passwd'"),
        ("../../outside", r"'way' is a link to '\.\./\.\./outside', outside the archive's folder"),
        ("a/../../outside", r"outside the archive's folder"),
        ("..", r"'way' is a link to '\.\.', outside"),
        ("loop/x", r"by way of another link"),
    ],
)
def test_a_link_that_leads_out_is_refused(place, kind, link, match):
    if kind == "zip":
        members = [("loop", (stat.S_IFLNK | 0o777, b"a")), ("way", (stat.S_IFLNK | 0o777, link.encode()))]
        path = zipped(place / "made.zip", [*members, ("a/x", b"x")])
    else:
        ways = [(n, {"type": tarfile.SYMTYPE, "linkname": to}) for n, to in (("loop", "a"), ("way", link))]
        path = tar(place / "made.tar", [*ways, ("a/x", b"x")])
    refused(path, match=match)


def test_a_chain_of_links_whose_texts_look_harmless_is_refused(place):
    # a/up is the folder itself, so that a/up/../x lies outside although its text says a/x.
    ways = [("a/up", ".."), ("a/x", "up/../x")]
    path = tar(place / "made.tar", [(n, {"type": tarfile.SYMTYPE, "linkname": to}) for n, to in ways])
    refused(path, match="by way of another link")


def test_a_file_behind_a_link_is_refused(place):
    members = [("way", {"type": tarfile.SYMTYPE, "linkname": "a"}), ("a/x", b"x"), ("way/y", b"y")]
    refused(tar(place / "made.tar", members), match="'way/y' lies behind the link 'way'")


def test_links_inside_the_archive_are_kept_and_hard_links_become_files(place):
    members = [
        ("a/x", b"x"),
        ("a/near", {"type": tarfile.SYMTYPE, "linkname": "x"}),
        ("b/far", {"type": tarfile.SYMTYPE, "linkname": "../a/x"}),
        ("b/same", {"type": tarfile.LNKTYPE, "linkname": "a/x"}),
    ]
    unpack(tar(place / "made.tar", members), place / "out")
    assert [(place / "out" / n).read_bytes() for n in ("a/near", "b/far", "b/same")] == [b"x"] * 3
    assert (place / "out" / "b" / "far").is_symlink()
    assert not (place / "out" / "b" / "same").is_symlink()
    assert (place / "out" / "a" / "x").stat().st_nlink == 1


@pytest.mark.parametrize(
    ("linkname", "match"),
    [("../../etc/passwd", "leads out"), ("/etc/passwd", "is absolute"), ("a/none", "no file of the archive")],
)
def test_a_hard_link_to_what_is_no_file_of_the_archive_is_refused(place, linkname, match):
    members = [("a/x", b"x"), ("b", {"type": tarfile.LNKTYPE, "linkname": linkname})]
    refused(tar(place / "made.tar", members), match=match)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_or_a_pipe_is_refused(place, kind):
    path = tar(place / "made.tar", [("good", b"x"), ("dev/null", {"type": kind, "devmajor": 1, "devminor": 3})])
    refused(path, match="'dev/null' is a device, a pipe or a socket")


@pytest.mark.parametrize("form", [stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_a_device_in_a_zip_is_refused(place, form):
    refused(zipped(place / "made.zip", [("dev", (form | 0o666, b""))]), match="'dev' is a device, a pipe or a socket")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["a/x", "a/./x"], r"'a/\./x' is in the archive twice"),
        (["a/x", "a/x"], "'a/x' is in the archive twice"),
        (["cafe\u0301", "caf\u00e9"], "is in the archive twice"),
        (["a/Lung.nii", "a/lung.nii"], "'a/lung.nii' and 'a/Lung.nii' differ by upper and lower case only"),
        (["A/x", "a/y"], "'a/y' and 'A/x' differ by upper and lower case only"),
        (["a", "a/x"], "'a/x' lies inside 'a', which is a file"),
        (["a/x", "a"], "'a/x' lies inside 'a', which is a file"),
    ],
)
def test_two_members_for_one_place_are_refused(place, kind, names, match):
    refused(packed(place, kind, [(name, name.encode()) for name in names]), match=match)


def test_an_encrypted_member_is_refused(place):
    path = zipped(place / "made.zip", [("secret", b"x")], method=zipfile.ZIP_STORED)
    with zipfile.ZipFile(path) as archive:
        at = archive.start_dir
    data = bytearray(path.read_bytes())
    data[at + 8] |= 1
    path.write_bytes(data)
    refused(path, match="'secret' is encrypted")
