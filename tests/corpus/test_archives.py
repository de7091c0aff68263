"""Providers' archives: what is sound is unpacked whole; what is damaged or fills the disk leaves nothing behind."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from fidopt import building
from fidopt.building import archives, unpack
from fidopt.errors import InputError, MissingError, OutputExistsError
from tests.packing import WRITERS, everything, noise, packed, refused, tar, zipped


@pytest.fixture
def place(tmp_path):
    """A folder inside one of the test's own, so that what lands outside the first is seen."""
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kind", WRITERS)
def test_a_sound_archive_is_unpacked_byte_for_byte(place, kind):
    data = noise(100_001)
    path = packed(place, kind, [("./a/one.nii", data), ("a/b/empty", b""), ("c.txt", b"text")])
    files = unpack(path.rename(place / "named_wrongly.bin"), place / "out")
    assert [file.relative_to(place / "out").as_posix() for file in files] == ["a/b/empty", "a/one.nii", "c.txt"]
    assert (place / "out" / "a" / "one.nii").read_bytes() == data
    assert (place / "out" / "a" / "b" / "empty").read_bytes() == b""
    assert everything(place) == [
        "named_wrongly.bin",
        "out",
        "out/a",
        "out/a/b",
        "out/a/b/empty",
        "out/a/one.nii",
        "out/c.txt",
    ]
    assert stat.S_IMODE((place / "out" / "c.txt").stat().st_mode) & 0o7111 == 0


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_a_bomb_is_refused_by_its_ratio(place, kind):
    path = packed(place, kind, [("good.txt", b"good"), ("bomb", bytes(8 << 20))])
    assert path.stat().st_size < 20_000
    refused(path, match=r"'bomb' takes the archive from \d+ to 8388612 bytes, more than 100 times its size")
    unpack(path, place / "out", most_ratio=100_000)
    assert (place / "out" / "bomb").stat().st_size == 8 << 20


def test_a_bomb_of_many_small_members_is_refused(place):
    path = zipped(place / "made.zip", [(f"part{n}", bytes(100_000)) for n in range(40)])
    refused(path, match=r"'part\d+' takes the archive from")


def test_what_the_disk_has_no_room_for_is_refused(place, monkeypatch):
    data = noise(3000)
    path = packed(place, "tar", [("one", data), ("two", data)])
    refused(path, match="'two' takes what is unpacked to 6000 bytes, and 5000 are the most; make room", most_bytes=5000)
    usage = archives.shutil.disk_usage(place)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: usage._replace(free=5000))
    refused(path, match="'two' takes what is unpacked to 6000 bytes, and 4500 are the most")


def test_a_header_that_says_it_is_enormous_is_not_read(place):
    raw = tarfile.TarInfo("x")
    raw.type, raw.size = tarfile.XHDTYPE, 1 << 33
    path = place / "made.tar"
    path.write_bytes(raw.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    refused(path, match="a header of 8589934592 bytes is more than any archive needs")


def test_a_terabyte_of_zeros_is_refused_without_being_unpacked(place):
    raw = tarfile.TarInfo("zeros")
    raw.size = 1 << 40
    path = place / "made.tar"
    path.write_bytes(raw.tobuf(tarfile.GNU_FORMAT))
    tracemalloc.start()
    refused(path, match=r"'zeros' takes the archive from 512 to 1099511627776 bytes", most_bytes=1 << 41)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_a_zip_that_says_less_than_it_holds_leaves_nothing(place):
    path = zipped(place / "made.zip", [("good", b"good"), ("liar", b"0123456789" * 200)])
    data = path.read_bytes()
    size = (2000).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (20).to_bytes(4, "little")))
    refused(path, match="the archive is damaged")


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_archive_is_refused_and_leaves_nothing(place, kind, share):
    path = packed(place, kind, [(f"part{n}", noise(5000, n)) for n in range(9)])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share) if kind != "tar" else 5632 * (3 if share == 0.5 else 5) - 100])
    refused(path, match="is damaged, get it again")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz"])
def test_a_flipped_bit_in_a_member_leaves_nothing(place, kind):
    path = packed(place, kind, [("one", noise(20_000)), ("two", noise(20_000, 1))])
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    refused(path, match="is damaged, get it again")


def test_a_tar_with_a_spoilt_header_in_the_middle_is_not_taken_for_a_shorter_one(place):
    path = packed(place, "tar", [("one", bytes(512)), ("two", bytes(512)), ("three", bytes(512))])
    data = bytearray(path.read_bytes())
    data[1024 + 3] ^= 1
    path.write_bytes(data)
    refused(path, match="no header is where one should be, 1024 bytes from the start; the archive is damaged")


def test_what_is_no_archive_is_refused(place):
    path = place / "made.zip"
    path.write_bytes(b"<html>not found</html>")
    refused(path, match="a zip or tar archive is expected, got a file that begins with b'<html>no'")
    path.write_bytes(b"")
    refused(path, match="a zip or tar archive is expected")
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    if sys.version_info < (3, 14):
        refused(path, match="compressed by zstandard.*zstd -d", error=MissingError)
    (place / "folder").mkdir()
    refused(place / "folder", match="expected, got a folder")


def test_a_folder_that_holds_something_is_not_unpacked_into(place):
    path = packed(place, "zip", [("a", b"a")])
    (place / "out").mkdir()
    unpack(path, place / "out")
    with pytest.raises(OutputExistsError, match="is there already"):
        unpack(path, place / "out")
    (place / "to").symlink_to(place / "nowhere")
    with pytest.raises(OutputExistsError, match="is there already"):
        unpack(path, place / "to")


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(place, monkeypatch):
    path = packed(place, "tar", [("one", b"1" * 3000), ("two", b"2" * 3000)])

    def full(*_args, **_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_copied", full)
    refused(path, match="No space left", error=OSError)


def test_gnu_and_old_tars_are_read(place):
    long = "/".join(["a" * 90] * 3)
    unpack(tar(place / "gnu.tar", [(long, b"x")], form=tarfile.GNU_FORMAT), place / "gnu")
    assert (place / "gnu" / long).read_bytes() == b"x"
    info = tarfile.TarInfo("old")
    info.size = 3
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[257:265] = bytes(8)
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    (place / "old.tar").write_bytes(bytes(header) + b"abc" + bytes(509 + 1024))
    unpack(place / "old.tar", place / "old")
    assert (place / "old" / "old").read_bytes() == b"abc"


def test_an_archive_packed_by_the_system_s_tar_comes_out_the_same(place):
    source = place / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "one.bin").write_bytes(noise(70_000))
    (source / "two.txt").write_text("two")
    (source / "link").symlink_to("two.txt")
    subprocess.run(["tar", "-czf", place / "made.tgz", "-C", source, "."], check=True)
    unpack(place / "made.tgz", place / "out")
    assert everything(place / "out") == everything(source)
    assert (place / "out" / "sub" / "one.bin").read_bytes() == (source / "sub" / "one.bin").read_bytes()
    assert (place / "out" / "link").readlink() == Path("two.txt")


@pytest.mark.parametrize("kind", WRITERS)
def test_whatever_is_spoilt_is_unpacked_or_refused_in_one_sentence(place, kind):
    whole = packed(place, kind, [("a/x", noise(900)), ("b/y" * 40, noise(300, 1))]).read_bytes()
    chance, sentences = random.Random(kind), []
    for number in range(60):
        spoilt = bytearray(whole)
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(spoilt))
            spoilt[at : at + chance.randint(0, 20)] = chance.randbytes(chance.randint(0, 20))
        path = place / str(number) / f"made.{kind}"
        path.parent.mkdir()
        path.write_bytes(spoilt)
        try:
            unpack(path, path.parent / "out")
        except InputError as error:
            sentences.append(str(error))
            assert everything(path.parent) == [path.name]
        assert {child.name for child in place.iterdir()} == {f"made.{kind}", *map(str, range(number + 1))}
    assert len(sentences) > 30
    assert not [sentence for sentence in sentences if "\n" in sentence]


UNPACKING = """
import sys
from pathlib import Path
from fidopt.building import unpack
source, target, *cases = sys.argv[1:]
files = unpack(Path(source) / "points.zip", Path(target) / "unpacked")
for case in cases:
    truth = Path(target) / case / "truth"
    truth.mkdir(parents=True)
    for side in ("fixed", "moving"):
        (truth / f"{side}_landmarks.csv").write_bytes(files[0].read_bytes())
"""


def test_a_prepare_py_unpacks_by_it_and_a_build_names_the_member_that_is_refused(make, tmp_path):
    good = zipped(tmp_path / "good.zip", [("deep/points.csv", b"x,y,z\n1.0,2.0,3.0\n")])
    cases = {"one": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}}
    dataset, roots = make({"points.zip": good}, prepare=UNPACKING, cases=cases)
    (built,) = building.build(dataset, roots=roots)
    assert (built.folder / "truth" / "fixed_landmarks.csv").read_text() == "x,y,z\n1.0,2.0,3.0\n"
    bad = zipped(tmp_path / "bad.zip", [("../points.csv", b"x,y,z\n1.0,2.0,3.0\n")])
    dataset, roots = make({"points.zip": bad}, prepare=UNPACKING, cases=cases)
    with pytest.raises(
        InputError, match=r"prepare\.py failed .*the name '\.\./points\.csv' leads out of the archive's"
    ):
        building.build(dataset, roots=roots, overwrite=True)
    assert built.folder.is_dir()
