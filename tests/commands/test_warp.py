"""``fidopt warp``: its words, its exit codes, and where it computes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of, open_image
from fidopt.cli import main
from fidopt.images.digest import digest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder, the current one, with a moving and a fixed store and a shift by one voxel along x."""
    monkeypatch.chdir(tmp_path)
    array = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    write_image("moving.ome.zarr", image_of(array, Grid.of(array.shape)))
    write_image("fixed.ome.zarr", image_of(array, Grid.of(array.shape)))
    sitk.WriteTransform(sitk.TranslationTransform(3, (1, 0, 0)), "shift.tfm")
    return tmp_path


WARP = ["warp", "moving.ome.zarr", "shift.tfm", "out.ome.zarr", "--like", "fixed.ome.zarr"]


def test_every_voxel_reads_the_moving_image_at_its_transform(folder, capsys):
    assert main(WARP) == 0
    assert capsys.readouterr().out == "out.ome.zarr: 3 x 4 x 5 of uint8, written\n"
    moving, out = open_image("moving.ome.zarr").values, open_image("out.ome.zarr").values
    assert np.array_equal(out[..., :-1], moving[..., 1:])
    assert not out[..., -1].any()


def test_several_transforms_are_composed_and_inverses_undo(folder):
    words = ["warp", "moving.ome.zarr", "shift.tfm", "inverse:shift.tfm", "out.ome.zarr", "--like", "fixed.ome.zarr"]
    assert main(words) == 0
    assert np.array_equal(open_image("out.ome.zarr").values, open_image("moving.ome.zarr").values)


def test_the_same_again_is_done_and_another_is_exit_code_two(folder, capsys):
    assert main(WARP) == 0
    assert main([*WARP, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n", 1)[1])["state"] == "there already"
    assert main([*WARP, "--interpolation", "cubic"]) == 2
    assert "was made from something else; give --overwrite" in capsys.readouterr().err
    assert main([*WARP, "--interpolation", "cubic", "--overwrite"]) == 0


def test_memory_and_a_cluster_change_nothing_of_what_is_written(folder):
    from distributed import LocalCluster

    assert main(WARP) == 0
    expected = digest("out.ome.zarr")
    assert main([*WARP, "--memory", "2GiB", "--overwrite"]) == 0
    assert digest("out.ome.zarr") == expected
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        words = [word if word != "out.ome.zarr" else "far.ome.zarr" for word in WARP]
        assert main([*words, "--cluster", cluster.scheduler_address]) == 0
    assert digest("far.ome.zarr") == expected


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["warp", "moving.ome.zarr", "out.ome.zarr", "--like", "fixed.ome.zarr"], "warp expects MOVING"),
        ([*WARP, "--memory", "much"], "--memory expects a size"),
        ([*WARP, "--memory", "0"], "--memory expects a size"),
        ([*WARP, "--memory=-1GiB"], "--memory expects a size"),
        ([*WARP, "--memory", "-1GiB"], "--memory expects a size such as 2GiB or 500MB, got '-1GiB'"),
        ([*WARP, "--memory", "1e400GiB"], "--memory expects a size such as 2GiB or 500MB, got '1e400GiB'"),
        ([*WARP, "--memory", "9" * 400 + "GiB"], f"got '{'9' * 40}...'"),
        ([*WARP, "--memory", "1 XB"], "--memory expects a size such as 2GiB or 500MB, got '1 XB'"),
        ([*WARP, "--memory", "0GiB"], "--memory expects at least 640MiB"),
        ([*WARP, "--memory", ""], "--memory expects a size"),
        ([*WARP, "--memory", "100MiB"], "--memory expects at least 640MiB"),
        ([*WARP, "--cluster", "gone.yml"], "a cluster is a scheduler's address"),
        ([*WARP, "--cluster", "nowhere"], "or the name of one (kubernetes, local, slurm, ssh); got 'nowhere'"),
        ([*WARP, "--interpolation", "quintic"], "quintic"),
        (WARP[:-2], "--like"),
        (["warp", "moving.ome.zarr", "gone.tfm", "out.ome.zarr", "--like", "fixed.ome.zarr"], "gone.tfm: there is no"),
        (["warp", "gone.ome.zarr", "shift.tfm", "out.ome.zarr", "--like", "fixed.ome.zarr"], "there is no store at"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(folder, capsys, words, why):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert err.count("\n") == 1
    assert not (folder / "out.ome.zarr").exists()
