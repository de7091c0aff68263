"""``fidopt pyramid``."""

from __future__ import annotations

import json

import numpy as np

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of, kind_of, levels_of, open_image
from fidopt.cli import main
from fidopt.images.digest import digest


def test_levels_are_written_again_as_they_were(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    array = np.arange(3 * 70 * 9, dtype=np.uint16).reshape(3, 70, 9)
    write_image("s.ome.zarr", image_of(array, Grid.of(array.shape)))
    before = digest("s.ome.zarr")
    assert main(["pyramid", "s.ome.zarr"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("s.ome.zarr: levels of 3 x 70 x 9, 2 x 35 x 5\n", "")
    assert digest("s.ome.zarr") == before


def test_labels_are_recorded_and_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    array = np.where(np.indices((2, 70, 4)).sum(axis=0) % 4 == 0, 9, 2).astype(np.uint8)
    write_image("s.ome.zarr", image_of(array, Grid.of(array.shape)), levels=False)
    assert len(levels_of("s.ome.zarr")) == 1
    assert main(["pyramid", "s.ome.zarr", "--labels", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": "s.ome.zarr", "levels": [[2, 70, 4], [1, 35, 2]]}
    assert kind_of(open_image("s.ome.zarr")) == "labels"
    assert np.unique(open_image("s.ome.zarr", level=1).values).tolist() == [2]


def test_what_is_no_store_is_exit_code_two(tmp_path, capsys):
    assert main(["pyramid", str(tmp_path / "nothing.ome.zarr")]) == 2
    assert "there is no store at" in capsys.readouterr().err
