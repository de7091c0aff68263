"""Images and names that are unusual and allowed: written, warped, read back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import blocks
from fidopt.cli import main

SHIFT = "#Insight Transform File V1.0\n#Transform 0\nTransform: TranslationTransform_double_3_3\nParameters: 0 0 0\n"
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with the transform that moves nothing."""
    monkeypatch.chdir(tmp_path)
    Path("stay.tfm").write_text(SHIFT + "FixedParameters:\n")
    return tmp_path


def volume(dtype: str, shape: tuple[int, ...] = (4, 5, 6)) -> np.ndarray:
    return (RANDOM.random(shape) * 100).astype(dtype)


@pytest.mark.parametrize(
    ("array", "spacing"),
    [
        (volume("u2", (1, 1, 1)), 1.0),
        (volume("i2", (1, 70, 3)), 1.0),
        (volume("i2", (70, 3, 1)), 1.0),
        (volume(">f4"), 1.0),
        (volume(">i2"), 1.0),
        (volume("f2"), 1.0),
        (volume("f4") > 50, 1.0),
        (volume("f8", (8, 5, 6))[::-1, ::2], 1.0),
        (np.asfortranarray(volume("f4")), 1.0),
        (volume("u8") + np.uint64(2**63), 1.0),
        (volume("f4"), 1e300),
        (volume("f4"), 1e-300),
    ],
    ids=str,
)
def test_what_is_unusual_is_written_and_warped_as_it_is(
    array: np.ndarray, spacing: float, capsys: pytest.CaptureFixture[str]
):
    grid = blocks.Grid.of(array.shape, spacing=(spacing,) * 3)
    blocks.write_image("a.ome.zarr", blocks.image_of(array, grid))
    assert main(["info", "a.ome.zarr", "--preview", "a.png"]) == 0
    assert main(["pyramid", "a.ome.zarr/"]) == 0
    assert (
        main(["warp", "a.ome.zarr", "stay.tfm", "b.ome.zarr/", "--like", "./a.ome.zarr", "--interpolation", "nearest"])
        == 0
    )
    for name in ("a.ome.zarr", "b.ome.zarr"):
        back = blocks.open_image(name)
        assert back.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(back.values, array)
        assert blocks.grid_of(back) == grid
    # On a machine that others use too, a line of progress may stand beside it.
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if not line.endswith(" left")] == ["drawn in a.png"]


def test_labels_beyond_what_a_double_holds_stay_what_they_are():
    labels = 2**60 + RANDOM.integers(0, 5, (70, 3, 3))
    blocks.write_image("a.ome.zarr", blocks.image_of(labels, blocks.Grid.of(labels.shape)), kind="labels")
    assert main(["warp", "a.ome.zarr", "stay.tfm", "b.ome.zarr", "--like", "a.ome.zarr"]) == 0
    np.testing.assert_array_equal(blocks.open_image("b.ome.zarr").values, labels)
    assert set(np.unique(blocks.open_image("b.ome.zarr", level=1).values)) <= set(np.unique(labels))


@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd", ".tif"])
def test_five_channels_come_back(ending: str):
    array = volume("u1", (5, 4, 5, 6))
    blocks.write_image("a.ome.zarr", blocks.image_of(array, blocks.Grid.of((4, 5, 6))))
    assert main(["convert", "a.ome.zarr", f"a{ending}"]) == 0
    assert main(["convert", f"a{ending}", "b.ome.zarr"]) == 0
    np.testing.assert_array_equal(blocks.open_image("b.ome.zarr").values, array)


@pytest.mark.parametrize(
    "name", ["with space", "üñí 影像", "new\nline", "quote'\"", "%41", "a:b", "[x]", "~t", "#h?q=1"]
)
def test_any_name_will_do(name: str):
    array = volume("i2")
    blocks.write_image("a.ome.zarr", blocks.image_of(array, blocks.Grid.of(array.shape)))
    for source, target in (
        ("a.ome.zarr", f"{name}.ome.zarr"),
        (f"{name}.ome.zarr", f"{name}.nii.gz"),
        (f"{name}.nii.gz", f"{name}-b.ome.zarr"),
        (f"{name}.ome.zarr", f"{name}.mha"),
        (f"{name}.mha", f"{name}-c.ome.zarr"),
    ):
        assert main(["convert", source, target]) == 0
        assert Path(target).exists()
    np.testing.assert_array_equal(blocks.open_image(f"{name}-c.ome.zarr").values, array)


def test_links_and_file_urls_are_the_stores_they_name(folder: Path, capsys: pytest.CaptureFixture[str]):
    array = volume("i2")
    blocks.write_image("a.ome.zarr", blocks.image_of(array, blocks.Grid.of(array.shape)))
    Path("link.ome.zarr").symlink_to("a.ome.zarr")
    url = f"file://{folder}/a.ome.zarr"
    assert main(["warp", "link.ome.zarr/", "stay.tfm", "b.ome.zarr", "--like", url]) == 0
    assert main(["warp", url, "stay.tfm", "b.ome.zarr", "--like", "link.ome.zarr"]) == 0
    assert "there already" in capsys.readouterr().out
    for source in ("link.ome.zarr", url):
        assert main(["warp", source, "stay.tfm", "a.ome.zarr/", "--like", "b.ome.zarr", "--overwrite"]) == 2
        assert "is both read and to be written" in capsys.readouterr().err
    Path("a.ome.zarr/0/c/0/0/0").unlink()
    assert main(["convert", url, "c.nii.gz"]) == 2
    assert "its shard file 0/c/0/0/0 is not there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shape", "spacing", "why"), [((0, 5, 6), 1.0, "at least one voxel"), ((4, 5, 6), 5e-324, "choose another unit")]
)
def test_what_has_no_voxel_or_no_size_is_refused(shape: tuple[int, ...], spacing: float, why: str):
    with pytest.raises(ValueError, match=why):
        blocks.Grid.of(shape, spacing=(spacing, 1.0, 1.0))
