"""An interrupted store: what is whole is kept, what is not is made again, and nothing else is left."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blocks.execute import DiskFullError, write_image
from blocks.graphs import store as tasks
from blocks.image import open_image
from blocks.image.construction import StoreExistsError
from blocks.journal import Journal, Written
from blocks.storage import Layout, StoreError, create_array, shard_file, write_shard
from tests.interrupting import Interrupted, Writer, ended_before, some_image
from tests.killing import files


def interrupted(path: Path, writer: Writer, most: int, made_from: str = "a") -> None:
    writer.most = sum(writer.wrote.values()) + most
    with pytest.raises(Interrupted):
        write_image(path, some_image().chunk(), made_from=made_from)
    writer.most = 1 << 30


@pytest.mark.parametrize("most", [0, 1, 3, 4, 5])
def test_a_store_is_taken_up_where_it_stopped(tmp_path: Path, writer: Writer, whole: dict[str, bytes], most: int):
    path = tmp_path / "a.ome.zarr"
    writer.wrote.clear()
    interrupted(path, writer, most)
    outcome = write_image(path, some_image().chunk(), made_from="a")
    assert (outcome.shards, outcome.there, outcome.begun_again) == (7, most, False)
    assert outcome.state == ("taken up" if most else "written")
    assert set(writer.wrote.values()) == {1}
    assert files(path) == whole


def test_another_image_begins_again_and_it_is_said(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    for name in ("b", "c"):
        writer.wrote.clear()
        interrupted(path, writer, 3, made_from=name)
    outcome = write_image(path, some_image(), made_from="a")
    assert (outcome.there, outcome.begun_again) == (0, True)
    assert files(path) == whole


def test_nobody_takes_up_a_store_of_which_nothing_says_what_it_is_made_from(tmp_path: Path, writer: Writer):
    path = tmp_path / "a.ome.zarr"
    writer.most = 3
    with pytest.raises(Interrupted):
        write_image(path, some_image().chunk())
    writer.most = 1 << 30
    assert write_image(path, some_image().chunk()).there == 0


def test_what_is_not_whole_is_made_again_and_leftovers_go(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    interrupted(path, writer, 4)
    first, second, third, fourth = (file for file in sorted((path / "0" / "c").rglob("*")) if file.is_file())
    second.write_bytes(second.read_bytes()[:-9])
    flipped = bytearray(third.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    third.write_bytes(flipped)
    fourth.unlink()
    (first.parent / "0.e0b1.partial").write_bytes(b"torn")
    (path / "1" / "c" / "0" / "7").mkdir(parents=True)
    (path / "1" / "c" / "0" / "7" / "7").write_bytes(b"no shard of it")
    outcome = write_image(path, some_image().chunk(), made_from="a")
    assert outcome.there == 1
    assert files(path) == whole


def test_what_was_left_of_metadata_that_was_being_written_goes(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    interrupted(path, writer, 3)
    (path / "1" / "zarr.json").rename(path / "1" / "zarr.0f3a.partial")
    assert write_image(path, some_image().chunk(), made_from="a").there == 3
    assert files(path) == whole


@pytest.mark.parametrize("made_from", ["a", None])
def test_what_a_killed_worker_left_of_a_shard_that_another_made_again_goes(
    tmp_path: Path, whole: dict[str, bytes], made_from: str | None
):
    path = tmp_path / "a.ome.zarr"

    def leave(done: int, _total: int, _written: int, /) -> None:
        for level in ("0", "1")[:done]:
            if (path / level / "c" / "0").is_dir():
                (path / level / "c" / "0" / "0.708a.partial").write_bytes(b"torn")

    write_image(path, some_image().chunk(), made_from=made_from, progress=leave)
    assert files(path) == whole


def test_a_shard_that_no_journal_knows_is_made_again(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    interrupted(path, writer, 4)
    for log in (path / ".journal").glob("*.log"):
        log.unlink()
    assert write_image(path, some_image().chunk(), made_from="a").there == 0
    assert files(path) == whole


def test_a_line_that_was_torn_says_nothing_nor_does_what_runs_into_it(tmp_path: Path):
    journal = Journal(str(tmp_path / ".journal"))
    (tmp_path / ".journal").mkdir()
    array = create_array(str(tmp_path / "1"), Layout.of((300, 5, 5), "u1", ("z", "y", "x")))
    for index in ((0, 0, 0), (1, 0, 0)):
        write_shard(array, index, np.zeros(array.layout.region(index).shape, "u1"))
        journal.record(array, index)
    (log,) = (tmp_path / ".journal").glob("*.log")
    first, second = log.read_text().splitlines()
    for text, there in ((f"{first}\n{second[:-3]}", 1), (f"{first[:9]}{second}\n", 0), (f"{first[:9]}\n{second}\n", 1)):
        log.write_text(text)
        for index in ((0, 0, 0), (1, 0, 0)):
            write_shard(array, index, np.zeros(array.layout.region(index).shape, "u1"))
        written = Written([array])
        journal.find([array], written)
        assert written.count == there
        assert sum(shard_file(array, (k, 0, 0)).exists() for k in (0, 1)) == there


def test_a_store_that_only_lacks_its_name_is_given_it(
    tmp_path: Path, writer: Writer, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.ome.zarr"
    with monkeypatch.context() as patched:
        patched.setattr("blocks.image.construction._remove", lambda _: (_ for _ in ()).throw(Interrupted()))
        with pytest.raises(Interrupted):
            write_image(path, some_image(), made_from="a")
    writer.wrote.clear()
    assert write_image(path, some_image(), made_from="a").there == 7
    assert not writer.wrote
    assert files(path) == whole


@pytest.mark.parametrize("made_from", ["a", None])
def test_the_header_s_loss_before_the_last_rename_does_not_begin_a_store_again(
    tmp_path: Path, writer: Writer, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, made_from: str | None
):
    path = tmp_path / "a.ome.zarr"
    ended_before(path / "zarr.json", monkeypatch, lambda: write_image(path, some_image(), made_from=made_from))
    assert not (path / ".journal").exists()
    with pytest.raises(StoreError, match="was not finished"):
        open_image(path)
    writer.wrote.clear()
    # Of what nobody knows the origin, nothing is taken up.
    assert write_image(path, some_image(), made_from=made_from).there == (7 if made_from else 0)
    assert sum(writer.wrote.values()) == (0 if made_from else 7)
    assert files(path) == whole


def test_what_only_lacks_its_name_is_not_given_that_of_another(
    tmp_path: Path, writer: Writer, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.ome.zarr"
    ended_before(path / "zarr.json", monkeypatch, lambda: write_image(path, some_image() + np.uint16(1), made_from="b"))
    outcome = write_image(path, some_image(), made_from="a")
    assert (outcome.there, outcome.begun_again) == (0, True)
    assert files(path) == whole


def test_what_can_never_be_written_leaves_nothing(tmp_path: Path, writer: Writer):
    path = tmp_path / "a.ome.zarr"
    writer.most, writer.error = 0, ValueError("no such transform")  # type: ignore[assignment]
    for made_from in ("a", None):
        with pytest.raises(tasks.ShardError, match="no such transform"):
            write_image(path, some_image().chunk(), made_from=made_from)
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_error_and_the_next_run_goes_on(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    writer.wrote.clear()
    writer.most, writer.error = 2, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # type: ignore[assignment]
    with pytest.raises(DiskFullError, match="the disk is full; make room and run this again"):
        write_image(path, some_image().chunk(), made_from="a")
    assert sum(writer.wrote.values()) == 2
    writer.most = 1 << 30
    assert write_image(path, some_image().chunk(), made_from="a").there == 2
    assert files(path) == whole


def test_a_failed_shard_is_tried_again_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write, tries = tasks.write_shard, Counter[tuple[int, ...]]()

    def failing(array: Any, index: tuple[int, ...], voxels: Any) -> int:
        tries[index] += 1
        if array.path.endswith("/0") and index == (1, 0, 0) and tries[index] <= failures:
            msg = "the network is away"
            raise OSError(msg)
        return write(array, index, voxels)

    monkeypatch.setattr(tasks, "write_shard", failing)
    failures = 2
    write_image(tmp_path / "a.ome.zarr", some_image().chunk())
    assert tries[1, 0, 0] >= 3
    failures = 1 << 30
    with pytest.raises(tasks.ShardError, match=r"shard 1/0/0 of .* could not be written: the network is away"):
        write_image(tmp_path / "b.ome.zarr", some_image().chunk())


def test_every_shard_may_fail_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]):
    write, failed = tasks.write_shard, set[str]()

    def failing(array: Any, index: tuple[int, ...], voxels: Any) -> int:
        shard = str(shard_file(array, index))
        if shard not in failed:
            failed.add(shard)
            msg = "the network is away"
            raise OSError(msg)
        return write(array, index, voxels)

    monkeypatch.setattr(tasks, "write_shard", failing)
    write_image(tmp_path / "a.ome.zarr", some_image().chunk())
    assert len(failed) == 7
    assert files(tmp_path / "a.ome.zarr") == whole


def test_a_journal_s_line_for_which_there_is_no_room_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write
    monkeypatch.setattr("blocks.journal.os.write", lambda log, line: write(log, line[:5]))
    with pytest.raises(DiskFullError, match="make room and run this again"):
        write_image(tmp_path / "a.ome.zarr", some_image().chunk(), made_from="a")


def test_two_processes_never_take_up_one_store(tmp_path: Path, writer: Writer):
    import fcntl

    path = tmp_path / "a.ome.zarr"
    interrupted(path, writer, 3)
    with (path / ".journal" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreExistsError, match="another process is writing"):
            write_image(path, some_image().chunk(), made_from="a")
    assert write_image(path, some_image().chunk(), made_from="a").there == 3


def test_a_header_that_is_torn_is_none(tmp_path: Path, writer: Writer, whole: dict[str, bytes]):
    path = tmp_path / "a.ome.zarr"
    interrupted(path, writer, 3)
    header = path / ".journal" / "header.json"
    assert json.loads(header.read_text())["made_from"] == "a"
    header.write_text(header.read_text()[:20])
    outcome = write_image(path, some_image().chunk(), made_from="a")
    assert (outcome.there, outcome.begun_again) == (0, True)
    assert files(path) == whole


def test_a_journal_line_carries_length_and_checksum_of_the_file(tmp_path: Path):
    array = create_array(str(tmp_path / "0"), Layout.of((5, 5, 5), "u1", ("z", "y", "x")))
    (tmp_path / ".journal").mkdir()
    write_shard(array, (0, 0, 0), np.ones((5, 5, 5), "u1"))
    Journal(str(tmp_path / ".journal")).record(array, (0, 0, 0))
    (log,) = (tmp_path / ".journal").glob("*.log")
    data = shard_file(array, (0, 0, 0)).read_bytes()
    assert log.read_text().split(" ")[:4] == ["0", "0/0/0", str(len(data)), f"{zlib.crc32(data):08x}"]
