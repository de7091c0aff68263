"""``fidopt info``: what it prints, and the picture it draws."""

from __future__ import annotations

import json

import imageio.v3 as iio
import numpy as np
import pytest
import zarr

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt.cli import main


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder, the current one, with a store of two levels."""
    monkeypatch.chdir(tmp_path)
    array = np.arange(3 * 70 * 9, dtype=np.uint16).reshape(3, 70, 9)
    write_image("s.ome.zarr", image_of(array, Grid.of(array.shape, spacing=(0.5, 1, 2), origin=(1, 2, 3)), unit="um"))
    return tmp_path


def test_json_says_all_of_it(store, capsys):
    assert main(["info", "s.ome.zarr", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    levels = facts.pop("levels")
    assert facts == {
        "path": "s.ome.zarr",
        "dims": ["z", "y", "x"],
        "shape": [3, 70, 9],
        "dtype": "uint16",
        "kind": "image",
        "unit": "um",
        "spacing": [0.5, 1, 2],
        "origin": [1, 2, 3],
        "direction": [1, 0, 0, 0, 1, 0, 0, 0, 1],
        "missing_shards": 0,
    }
    assert [level["shape"] for level in levels] == [[3, 70, 9], [2, 35, 5]]
    assert [level["spacing"] for level in levels] == [[0.5, 1, 2], [1, 2, 4]]
    assert levels[0]["chunks"] == [64, 64, 64]
    assert levels[0]["shards"] == [64, 128, 64]
    assert all(level["bytes"] > 0 for level in levels)


def test_people_read_a_table(store, capsys):
    assert main(["info", "s.ome.zarr"]) == 0
    out = capsys.readouterr().out
    assert "3 x 70 x 9 (z, y, x)" in out
    assert "uint16, image" in out
    assert "0.5, 1, 2 um (x first)" in out
    assert "spacing (um, x first)" in out


def test_shapes_stay_whole_in_a_terminal_of_80_columns(store, capsys, monkeypatch):
    grid = Grid.of((273, 315, 258), spacing=(2 / 3, 2 / 3, 2 / 3))
    write_image("wide.ome.zarr", image_of(np.zeros(grid.shape, np.uint8), grid))
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["info", "wide.ome.zarr"]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in ("273x315x258", "256x256x256", "0.666667,", "0.666667 "))
    assert max(map(len, out.splitlines())) <= 80


def test_a_preview_is_a_picture(store, capsys):
    assert main(["info", "s.ome.zarr", "--preview", "p.png", "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert err == "drawn in p.png\n"
    assert iio.imread("p.png", plugin="pillow").shape[-1] == 3


def test_what_is_no_store_is_exit_code_two(store, capsys):
    assert main(["info", "nothing.ome.zarr"]) == 2
    assert "there is no store at" in capsys.readouterr().err
    (store / "f.nii").write_bytes(b"")
    assert main(["info", "f.nii"]) == 2
    assert "`fidopt convert` makes one of it" in capsys.readouterr().err


def test_shards_that_are_lost_are_counted(store, capsys):
    assert main(["info", "s.ome.zarr"]) == 0
    assert "missing" not in capsys.readouterr().out
    for lost, said in (
        (("0", "0", "0", "0"), "1 shard file is not there"),
        (("1", "0", "0", "0"), "2 shard files are"),
    ):
        level, *index = lost
        store.joinpath("s.ome.zarr", level, "c", *index).unlink()
        assert main(["info", "s.ome.zarr"]) == 0
        assert said in capsys.readouterr().out
    assert main(["info", "s.ome.zarr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_shards"] == 2


def test_a_store_of_nothing_but_zeros_lacks_no_shard(store, capsys):
    write_image("zeros.ome.zarr", image_of(np.zeros((300, 70, 9), np.uint8), Grid.of((300, 70, 9)), unit="um"))
    assert main(["info", "zeros.ome.zarr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_shards"] == 0


@pytest.mark.parametrize("attributes", [{}, {"konfai": {"attributes": {}}}])
def test_of_another_tool_s_store_nothing_is_said(store, capsys, attributes):
    group = zarr.create_group("other.zarr", zarr_format=3)
    group.create_array("0", shape=(9, 9), chunks=(3, 3), dtype="uint8")
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}]
    axes = [{"name": name, "type": "space"} for name in "yx"]
    group.attrs.update({"ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}} | attributes)
    assert main(["info", "other.zarr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_shards"] is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("p.jpg", "--preview writes a PNG file, NAME.png, got 'p.jpg'"),
        ("p", "--preview writes a PNG file"),
        ("new/p.png", "--preview new/p.png: there is no folder new; make it first, or name another"),
        ("folder.png", "--preview folder.png is a folder; name a file"),
        ("s.ome.zarr/p.png", "lies inside the OME-Zarr store"),
        ("s.ome.zarr/0/p.png", "lies inside the OME-Zarr store"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused_and_nothing_is_made(store, capsys, name, why):
    (store / "folder.png").mkdir()
    before = sorted(store.rglob("*"))
    assert main(["info", "s.ome.zarr", "--preview", name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err
    assert sorted(store.rglob("*")) == before


def test_a_picture_may_be_named_in_capitals(store, capsys):
    assert main(["info", "s.ome.zarr", "--preview", "P.PNG"]) == 0
    assert (store / "P.PNG").read_bytes()[1:4] == b"PNG"
