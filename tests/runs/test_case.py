from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import nibabel
import numpy as np
import pytest

from fidopt.errors import UsageError
from fidopt.runner import methods
from fidopt.runner.case import Order, run_case
from fidopt.runner.methods import refuse_unfit

#: Shows everything a run is given, by way of the log.
LOOK = """
echo "args $#"; env | sort; pwd; find "$(dirname "$1")" | sort
cp "$1" "$3/DVF.nii.gz"
"""


def order(world, name: str = "m", *, variant: str | None = None) -> Order:
    chosen = methods.find(name if variant is None else f"{name}@{variant}", world.roots)
    hidden = (world.roots.corpus, world.roots.archives, world.roots.results)
    return Order(chosen.method, chosen.folder, world.roots.environments / "m", 3, chosen.variant, hidden=hidden)


def log_of(world, run: str, **changes) -> str:
    """Run a method that copies what it is shown to a file beside its own folder, and return that."""
    folder = world.method("m", f"{{ {run}\n}} > {world.share}/seen 2>&1", **changes)
    with run_case(order(world), world.case("one")) as result:
        assert result.failure is None
    assert folder.is_dir()
    return (world.share / "seen").read_text()


def test_a_run_gives_its_field_its_time_and_its_memory(world):
    world.method("m", 'cp "$1" "$3/DVF.nii.gz"; sleep 0.2; echo well')
    with run_case(order(world), world.case("one")) as result:
        assert result.failure is None
        assert result.field is not None
        assert result.field.name == "DVF.nii.gz"
        assert result.field.is_file()
        assert 0.2 <= (result.time_s or 0) < 2
        assert result.threads == 3
        assert result.log_tail == "well"
        scratch = result.field.parents[1]
    assert not scratch.exists()


def test_a_method_sees_its_inputs_and_nothing_of_the_truth(world, monkeypatch):
    monkeypatch.setenv("FIDOPT_CORPUS", str(world.roots.corpus))
    monkeypatch.setenv("FIDOPT_MOVING_MASK", "/left/over")
    monkeypatch.setenv("SOME_FOLDER", f"{world.roots.corpus}/toy")
    seen = log_of(world, LOOK)
    assert "truth/" not in seen
    assert "_labels" not in seen
    assert str(world.roots.corpus) not in seen
    assert "MASK" not in seen
    assert "args 3" in seen


def test_the_variables_are_those_of_the_contract(world):
    variants = {"fine": {"tier": 2, "source": "tests", "settings": {"b": 1, "a": [2]}}}
    world.method("m", f'env > {world.share}/env; cp "$1" "$3/DVF.nii.gz"', masks=["fixed_mask"], variants=variants)
    with run_case(order(world, variant="fine"), world.case("one")) as result:
        assert result.failure is None
    lines = (world.share / "env").read_text().splitlines()
    told = dict(line.split("=", 1) for line in lines if line.startswith("FIDOPT_"))
    assert Path(told.pop("FIDOPT_FIXED_MASK")).name == "fixed_mask.nii.gz"
    assert told.pop("FIDOPT_RUN")
    assert told == {
        "FIDOPT_FIXED_MODALITY": "ct",
        "FIDOPT_MOVING_MODALITY": "mr",
        "FIDOPT_DIMENSION": "3",
        "FIDOPT_UNIT": "mm",
        "FIDOPT_REGISTRATION": "deformable",
        "FIDOPT_THREADS": "3",
        "FIDOPT_SEED": "0",
        "FIDOPT_DEVICE": "cpu",
        "FIDOPT_VARIANT": "fine",
        "FIDOPT_SETTINGS": '{"a": [2], "b": 1}',
        "FIDOPT_ENV": str(world.roots.environments / "m"),
    }


def test_the_inputs_hold_the_stores_voxels_and_geometry(world):
    world.method("m", f'cp "$1" {world.share}/f.nii.gz; cp "$2" {world.share}/m.nii.gz; cp "$1" "$3/DVF.nii.gz"')
    with run_case(order(world), world.case("two")) as result:
        assert result.failure is None
    fixed = nibabel.load(world.share / "f.nii.gz")
    expected = np.arange(5 * 6 * 7).reshape(5, 6, 7) + 1
    np.testing.assert_array_equal(np.asarray(fixed.dataobj), expected.T)
    assert fixed.header.get_zooms() == (1.0, 1.5, 2.0)
    moving = nibabel.load(world.share / "m.nii.gz")
    np.testing.assert_array_equal(np.asarray(moving.dataobj), expected[::-1].T)


def test_a_method_that_reads_stores_is_given_copies_of_them(world):
    run = 'test -f "$1/zarr.json"; test -f "$2/zarr.json"; mkdir "$3/DVF.ome.zarr"'
    world.method("m", run, reads="ome-zarr")
    with run_case(order(world), world.case("one")) as result:
        assert result.failure is None
        assert result.field is not None
        assert result.field.name == "DVF.ome.zarr"


def test_a_method_that_destroys_its_inputs_harms_nothing(world):
    before = digest(world.roots.corpus)
    spoil = 'echo spoilt > "$1"; rm "$2"; rm -rf "$(dirname "$1")"; echo x > "$3/DVF.nii.gz"'
    world.method("m", spoil)
    with run_case(order(world), world.case("one")) as result:
        assert result.failure is None
    assert digest(world.roots.corpus) == before


def test_a_folder_made_unwritable_is_removed_all_the_same(world):
    world.method("m", 'cp "$1" "$3/DVF.nii.gz"; mkdir -p a/b; touch a/b/c; chmod 500 a/b a')
    with run_case(order(world), world.case("one")) as result:
        assert result.field is not None
        scratch = result.field.parents[1]
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("run", "stage", "reason"),
    [
        ("echo first; echo broken >&2; exit 7", "run", "exit code 7"),
        ("kill -SEGV $$", "run", "signal 11"),
        ("true", "field", "wrote no DVF.nii.gz"),
        ("sleep 30", "timeout", "after 1 s"),
        ("trap '' TERM; setsid sleep 30 & while :; do sleep 0.1; done", "timeout", "after 1 s"),
    ],
)
def test_a_failure_says_where_and_why(world, run, stage, reason):
    world.method("m", run, timeout_s=1)
    with run_case(order(world), world.case("one")) as result:
        assert result.field is None
        assert result.failure is not None
        assert result.failure.stage == stage
        assert reason in result.failure.reason
        assert result.time_s is not None
        if "broken" in run:
            assert result.failure.log_tail == "first\nbroken"


def test_a_failed_run_gives_no_field_even_where_it_wrote_one(world):
    world.method("m", 'cp "$1" "$3/DVF.nii.gz"; exit 1')
    with run_case(order(world), world.case("one")) as result:
        assert result.field is None


def test_a_case_without_images_is_refused(world, own_corpus):
    own_corpus()
    case = world.case("one")
    (case.moving).rename(case.folder / "gone")
    world.method("m", "true")
    with pytest.raises(UsageError, match="no images"), run_case(order(world), case):
        pass


@pytest.mark.parametrize(
    ("method", "dataset", "said"),
    [
        ({"dimensions": [2]}, {}, "takes 2D images; toy is 3D"),
        ({"modalities": ["ct"]}, {}, "takes ct; toy has mr"),
        ({"tasks": ["segmentation"]}, {}, "does segmentation; toy is a registration"),
        ({}, {"registration": "rigid"}, "no rigid stage"),
    ],
)
def test_a_dataset_the_method_does_not_take_is_refused(world, method, dataset, said):
    world.method("m", "true", **method)
    with pytest.raises(UsageError, match=said):
        refuse_unfit(methods.find("m", world.roots), world.dataset(**dataset))


def test_an_unknown_method_or_variant_lists_those_there_are(world):
    world.method("m", "true", variants={"fine": {"source": "tests"}})
    with pytest.raises(UsageError, match="there are: m"):
        methods.find("n", world.roots)
    with pytest.raises(UsageError, match="its variants are: fine"):
        methods.find("m@coarse", world.roots)


def test_every_problem_of_a_method_json_is_named_with_its_key(world):
    folder = world.method("m", "true")
    document = json.loads((folder / "method.json").read_text())
    document |= {"dimensions": [4], "timeout_s": 0, "thread": 2, "device": "tpu"}
    (folder / "method.json").write_text(json.dumps(document))
    with pytest.raises(Exception, match="dimensions") as caught:
        methods.find("m", world.roots)
    for key in ("timeout_s", "thread", "device"):
        assert key in str(caught.value)
    assert os.linesep.join(str(caught.value).splitlines()).count("method.json") >= 4


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(f).encode() + f.read_bytes() for f in files)).hexdigest()
