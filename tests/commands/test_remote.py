"""Commands on stores in a bucket and on a web server; one that is killed in the middle is taken up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import blocks
from fidopt.cli import main
from fidopt.images.identity import identity
from tests.interrupting import Interrupted, Writer
from tests.killing import fidopt, files
from tests.remote import Objects

SHAPE = (130, 140, 600)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with an image, the same as a store, and a transform."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    voxels = np.random.default_rng(2).integers(0, 50, SHAPE, dtype="uint8")
    blocks.write_image("image.ome.zarr", blocks.image_of(voxels, blocks.Grid.of(SHAPE)))
    Path("shift.tfm").write_text(
        "#Insight Transform File V1.0\n#Transform 0\nTransform: TranslationTransform_double_3_3\n"
        "Parameters: 1.5 -2.25 3.0\nFixedParameters: \n"
    )
    return tmp_path


def held(bucket: Objects, store: str) -> dict[str, bytes]:
    start = f"{store.removeprefix('s3://')}/"
    return {name.removeprefix(start): held for name, held in bucket.content.items() if name.startswith(start)}


def test_every_command_takes_stores_in_a_bucket(folder: Path, bucket: Objects, capsys: pytest.CaptureFixture[str]):
    there = "s3://data/image.ome.zarr"
    assert main(["convert", "image.ome.zarr", there]) == 0
    assert held(bucket, there) == files(folder / "image.ome.zarr")
    assert main(["convert", "image.ome.zarr", there]) == 0
    assert "there already with the same voxels and geometry" in capsys.readouterr().out
    for moving, store in ((there, "s3://data/{}"), ("image.ome.zarr", "{}")):
        assert main(["warp", moving, "shift.tfm", store.format("warped.ome.zarr"), "--like", moving]) == 0
        assert main(["field", "shift.tfm", store.format("field.ome.zarr"), "--like", moving]) == 0
    assert held(bucket, "s3://data/field.ome.zarr") == files(folder / "field.ome.zarr")
    warped = blocks.open_image("s3://data/warped.ome.zarr")
    np.testing.assert_array_equal(warped.values, blocks.open_image("warped.ome.zarr").values)
    assert main(["pyramid", there]) == 0
    assert held(bucket, there) == files(folder / "image.ome.zarr")
    capsys.readouterr()
    for store in (there, "image.ome.zarr"):
        assert main(["info", store, "--json"]) == 0
    said = capsys.readouterr().out.split("\n}\n")
    there_said, here_said = (json.loads(text + "\n}") for text in said[:2])
    assert there_said["levels"] == here_said["levels"]
    assert there_said["spacing"] == here_said["spacing"]


def test_a_store_in_a_bucket_that_was_put_anew_is_another_one(folder: Path, bucket: Objects):
    bucket.put_folder(folder / "image.ome.zarr", "data/image.ome.zarr")
    before = identity("s3://data/image.ome.zarr")
    assert identity("s3://data/image.ome.zarr/") == before
    bucket.put("data/image.ome.zarr/0/c/0/0/0", bucket.content["data/image.ome.zarr/0/c/0/0/0"])
    assert identity("s3://data/image.ome.zarr") != before


def test_a_store_on_the_web_is_read_and_not_written(folder: Path, web: Objects, capsys: pytest.CaptureFixture[str]):
    url = f"{web.url}/image.ome.zarr"
    assert main(["info", url]) == 0
    assert main(["convert", url, "copy.ome.zarr"]) == 0
    assert files(folder / "copy.ome.zarr") == files(folder / "image.ome.zarr")
    capsys.readouterr()
    assert main(["convert", "image.ome.zarr", f"{web.url}/new.ome.zarr"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "new.ome.zarr can only be read" in said
    assert main(["pyramid", url]) == 2
    assert capsys.readouterr().err.startswith(f"fidopt: {url} can only be read: a store is written to a folder or")
    assert main(["info", f"{web.url}/absent.ome.zarr"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "there is no OME-Zarr store at" in said


def test_a_store_on_the_web_that_was_put_anew_is_another_one(folder: Path, web: Objects):
    url = f"{web.url}/image.ome.zarr"
    before = identity(url)
    assert identity(f"{url}/") == before
    # Of a shard the server is only asked what it says of it.
    assert web.fetched() == 0
    shard, metadata = "image.ome.zarr/0/c/0/0/1", folder / "image.ome.zarr" / "zarr.json"
    web.times[shard] = 7
    changed = identity(url)
    assert changed != before
    metadata.write_bytes(metadata.read_bytes() + b"\n")
    assert identity(url) not in (before, changed)


def test_a_server_that_answers_no_head_is_asked_otherwise(folder: Path, web: Objects):
    url = f"{web.url}/image.ome.zarr"
    before = identity(url)
    web.failing["/c/0/0/1"] = [405]
    assert identity(url) == before
    assert web.failing == {"/c/0/0/1": []}
    (folder / "image.ome.zarr" / "0" / "c" / "0" / "0" / "1").unlink()
    assert identity(url) != before


def test_a_web_store_that_changed_is_not_taken_for_what_was_warped(
    folder: Path, web: Objects, capsys: pytest.CaptureFixture[str]
):
    words = ["warp", f"{web.url}/image.ome.zarr", "shift.tfm", "out.ome.zarr", "--like", "image.ome.zarr"]
    assert main(words) == 0
    assert main(words) == 0
    assert "there already" in capsys.readouterr().out
    web.times["image.ome.zarr/0/c/0/0/0"] = 7
    assert main(words) == 2
    assert "out.ome.zarr is there and was made from something else" in capsys.readouterr().err


def test_an_interrupted_warp_of_a_web_store_that_changed_begins_again_and_says_so(
    folder: Path, web: Objects, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    words = ["convert", f"{web.url}/image.ome.zarr", "out.ome.zarr"]
    stop = Writer(monkeypatch)
    stop.most = 1
    with pytest.raises(Interrupted):
        main(words)
    stop.most = 1 << 30
    web.times["image.ome.zarr/0/c/0/0/0"] = 7
    assert main(words) == 0
    assert "all was made again" in capsys.readouterr().err
    assert files(folder / "out.ome.zarr") == files(folder / "image.ome.zarr")


def test_a_command_that_is_killed_while_it_writes_to_a_bucket_takes_up_where_it_stopped(folder: Path, bucket: Objects):
    out, words = "s3://data/out.ome.zarr", ["convert", "image.ome.zarr", "s3://data/out.ome.zarr"]
    # The last shard is not taken until the command has been killed.
    bucket.holding = "/out.ome.zarr/0/c/0/0/2"

    def noted() -> list[str]:
        return [line for log in folder.glob("state/**/*.log") for line in log.read_text().splitlines()[1:]]

    assert fidopt(words, when=lambda: bucket.waiting.is_set() and noted()).returncode == -9
    bucket.release()
    taken_up = len(noted())
    assert "zarr.json" not in held(bucket, out)
    bucket.sent.clear()
    done = fidopt(words)
    assert done.returncode == 0, done.stderr
    assert f"taken up: {taken_up} of " in done.stderr
    assert done.stderr.count("\n") == 1
    assert held(bucket, out) == files(folder / "image.ome.zarr")
    assert not list(folder.glob("state/**/*.log"))


def test_a_shard_that_a_server_lost_is_not_read_as_zeros(
    folder: Path, bucket: Objects, web: Objects, capsys: pytest.CaptureFixture[str]
):
    assert main(["convert", "image.ome.zarr", "s3://data/image.ome.zarr"]) == 0
    del bucket.content["data/image.ome.zarr/0/c/0/0/1"]
    (folder / "image.ome.zarr" / "0" / "c" / "0" / "0" / "1").unlink()
    for url in ("s3://data/image.ome.zarr", f"{web.url}/image.ome.zarr"):
        assert main(["info", url]) == 0
        capsys.readouterr()
        assert main(["convert", url, "back.ome.zarr"]) == 2
        said = capsys.readouterr().err
        assert "/image.ome.zarr: its shard file 0/c/0/0/1 is not there, and its voxels would be read as zeros" in said
        assert said.count("\n") == 1
        assert not Path("back.ome.zarr").exists()
