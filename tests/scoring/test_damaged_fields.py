"""Fields damaged at random: refused in one line, or read to the last bit; none is another field in silence."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from fidopt.images.conventions import CONTRACT, convention
from fidopt.scoring.evaluation import score_case
from fidopt.scoring.submission import read_or_fail
from tests.scoring.damages import DAMAGES, FORMATS, Sound, damaged

pytest.importorskip("konfai", reason="KonfAI is not installed")

SEED = 20261130
#: One of every damage in every format.
QUICK = sum(len(kinds) for _, kinds in DAMAGES.values())


@pytest.fixture
def sound(grids):
    grid = grids()[0]
    return Sound(np.random.default_rng(5).normal(0, 2, (3, *grid.shape)).astype(np.float32), grid)


def read(path, case):
    """Return what a file is read as, and why it is not: arrays of voxels by Learn2Reg's convention."""
    return read_or_fail(case, path, convention("learn2reg") if path.suffix == ".npz" else CONTRACT)


def judge(case, sound, folder, capfd, count):
    """Damage so many files and return how each kind was answered; every answer is one of the two."""
    answers = Counter()
    capfd.readouterr()
    for how, path in damaged(sound, folder, count=count, seed=SEED):
        capfd.readouterr()
        field, failure = read(path, case)
        said = capfd.readouterr()
        assert (said.out, said.err) == ("", ""), how
        name = how.partition(": ")[2].partition(",")[0]
        if failure is not None:
            assert "\n" not in failure.reason, how
            assert path.name in failure.reason, how
            answers[name, "refused"] += 1
            continue
        assert field.grid == sound.grid, how
        # Voxels of .npz are made from the world's and back: to the last bit but one of float32.
        apart = np.abs(np.asarray(field.vectors[:]) - sound.vectors).max()
        assert apart <= (1e-6 if path.suffix == ".npz" else 0), how
        answers[name, "right"] += 1
    return answers


@pytest.mark.parametrize("kind", FORMATS)
def test_a_sound_field_of_every_format_is_read(make_case, sound, tmp_path, kind):
    field, failure = read(sound.write(tmp_path / FORMATS[kind], kind), make_case())
    assert failure is None
    np.testing.assert_allclose(np.asarray(field.vectors[:]), sound.vectors, rtol=0, atol=1e-6)


def test_every_damage_in_every_format_is_refused_or_read_right(make_case, sound, tmp_path, capfd):
    answers = judge(make_case(), sound, tmp_path, capfd, QUICK)
    assert sum(answers.values()) == QUICK
    for name in ("not finite", "intent", "shape", "grid", "spacing"):
        assert answers[name, "right"] == 0


@pytest.mark.slow
def test_three_hundred_damaged_fields_are_refused_or_read_right(make_case, sound, tmp_path, capfd):
    answers = judge(make_case(), sound, tmp_path, capfd, 300)
    assert sum(answers.values()) == 300
    assert all(answers[name, "refused"] for name in DAMAGES)
    assert sum(count for (_, answer), count in answers.items() if answer == "refused") > 200


def test_a_damaged_field_counts_as_the_unregistered_pair(make_case, sound, tmp_path, grids):
    case = make_case(shift=(3.0, -4.0, 2.0))
    path = sound.write(tmp_path / "DVF.nii.gz", "nii.gz")
    path.write_bytes(path.read_bytes()[:-9])
    field, failure = read(path, case)
    assert "it was cut short" in failure.reason or "ends too soon" in failure.reason
    assert score_case(case, field) == score_case(case, None)


def test_a_compressed_metaimage_that_does_not_say_how_long_it_is_is_refused(make_case, sound, tmp_path):
    # Its reader would hand out memory that nobody wrote.
    path = sound.write(tmp_path / "DVF.mha", "mha, compressed")
    content = path.read_bytes()
    lines = content.split(b"\n")
    (place,) = [k for k, line in enumerate(lines) if line.startswith(b"CompressedDataSize")]
    path.write_bytes(b"\n".join(lines[:place] + lines[place + 1 :]))
    _, failure = read(path, make_case())
    assert "its header says CompressedDataSize = nothing" in failure.reason


@pytest.mark.parametrize("chunk", [0, -1, 63])
def test_a_store_whose_chunks_make_no_shard_is_refused(make_case, sound, tmp_path, chunk):
    path = sound.write(tmp_path / "DVF.ome.zarr", "ome.zarr")
    file = path / "0" / "zarr.json"
    text = file.read_text()
    assert '"chunk_shape":' in text

    document = json.loads(text)
    document["codecs"][0]["configuration"]["chunk_shape"][1] = chunk
    file.write_text(json.dumps(document))
    _, failure = read(path, make_case())
    assert "fetch or write the store again" in failure.reason
