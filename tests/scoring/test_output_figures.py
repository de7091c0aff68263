"""Figures of real segmentations and syntheses, published or measured with other tools, through ``fidopt score``."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import blocks
from blocks.image import grid_of, open_image
from fidopt import corpus, resources
from fidopt.cli import main
from fidopt.images.nifti import write_nifti

pytest.importorskip("konfai", reason="KonfAI is not installed")

NECK, HEAD = "headneck_masks", "mr_ct_templates"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("output-figures")


@pytest.fixture
def score(shared_data, folder, monkeypatch, capsys):
    """Return a function that builds a dataset once and scores a folder of outputs as a person does: its JSON."""

    def _score(name, outputs):
        monkeypatch.setenv("FIDOPT_ARCHIVES", str(shared_data(name).parent))
        monkeypatch.setenv("FIDOPT_CORPUS", str(folder / "corpus"))
        monkeypatch.setenv("FIDOPT_RESULTS", str(folder / "results"))
        if not (folder / "corpus" / name).exists():
            assert main(["build", name]) == 0
        made = outputs()
        capsys.readouterr()
        assert main(["score", "figures", name, "--outputs", str(made), "--machine", "here", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return _score


@pytest.mark.timeout(1800)  # a minute alone, many beside other work
def test_the_neck_gives_all_thirty_published_dice_and_the_figures_of_case_90(score, shared_data, folder, capsys):
    def outputs():
        script = corpus.dataset_folder(NECK, resources.roots()) / "outputs.py"
        subprocess.run([sys.executable, str(script), str(shared_data(NECK)), str(folder / "masks")], check=True)
        return folder / "masks"

    document = score(NECK, outputs)
    with (shared_data(NECK) / "dice.csv").open(newline="") as stream:
        published = {f"case{int(row['case']):02d}": row for row in csv.DictReader(stream)}
    assert sorted(document["rows"]) == sorted(published)
    measured = 0
    for name, row in document["rows"].items():
        assert row["error"] is None
        found = row["labels"]["dice"]
        expected = {v: float(d) for v in "12" if (d := published[name][f"dice_{v}"])}
        # Both masks are empty where nothing is published: no Dice, and no part in the mean.
        assert found == pytest.approx(expected, abs=1e-12)
        assert row["metrics"]["dice"] == pytest.approx(np.mean(list(expected.values())), abs=1e-12)
        held = sum(int(published[name][f"truth_voxels_{v}"]) > 0 for v in "12")
        assert row["metrics"]["structures"] == row["metrics"]["structures_produced"] == held
        measured += 2
    assert measured == 30
    for name in ("case86", "case94"):
        row = document["rows"][name]
        assert row["labels"]["dice"]["1"] == 0.0
        assert row["labels"]["hd95"]["1"] is None
        assert row["metrics"]["structures_invented"] == 1
    case90 = document["rows"]["case90"]["labels"]
    assert case90["hd95"] == {"1": pytest.approx(6.32456, abs=1e-5), "2": pytest.approx(2.0, abs=1e-9)}
    assert case90["surface_dice"] == {"1": pytest.approx(0.48143, abs=1e-5), "2": pytest.approx(0.86415, abs=1e-5)}
    assert main(["table", NECK, "--json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["boards"]
    (line,) = board["lines"]
    assert line["metrics"]["dice"]["value"] == pytest.approx(document["mean"]["dice"])
    assert line["notes"] == ["produced 24 of the truth's 24 structures, and 2 that the truth lacks"]


def test_a_constant_leaves_eighty_four_hounsfields_in_the_head(score, folder, capsys):
    def outputs():
        case = folder / "corpus" / HEAD / "head"
        target, mask = open_image(case / "truth" / "target.ome.zarr"), open_image(case / "mask.ome.zarr")
        flat = np.full(target.shape, np.median(target.values[mask.values == 1]), np.float32)
        (folder / "flat" / "head").mkdir(parents=True)
        write_nifti(folder / "flat" / "head" / "image.nii.gz", blocks.image_of(flat, grid_of(target), unit="mm"))
        return folder / "flat"

    row = score(HEAD, outputs)["rows"]["head"]
    assert row["error"] is None
    assert row["metrics"]["mae"] == pytest.approx(83.7, abs=0.05)
    assert row["metrics"]["psnr"] == pytest.approx(21.218, abs=1e-3)
    assert main(["table", HEAD]) == 0
    shown = capsys.readouterr().out
    assert "SSIM is the mean over the mask's voxels" in shown
    assert "83.65" in shown
    assert "registration" not in shown
