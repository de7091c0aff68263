"""Damaged files of every format that is read: one sentence that names the file and says what to do, exit code 2."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import h5py
import imagecodecs
import imageio.v3 as iio
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import tifffile
import zarr

import blocks
from blocks.storage import StoreError
from fidopt.cli import main
from fidopt.errors import FidoptError
from fidopt.images.landmarks import read_landmarks

VOXELS = (np.random.default_rng(0).random((6, 7, 8)) * 1000).astype("i2")
COLOURS = (np.random.default_rng(1).random((30, 40, 3)) * 255).astype("u1")
IMAGES = ["a.nii", "a.nii.gz", "a.mha", "raw.mha", "a.nrrd", "raw.nrrd", "a.mhd", "a.nhdr", "a.tif", "z.tif"]
IMAGES += ["a.ome.tif", "t.tif", "a.png", "g.png", "c.png", "a.jpg", "a.bmp", "a.h5"]
TRANSFORMS = ["e.tfm", "e.txt", "e.h5", "e.mat", "b.tfm", "b.h5", "c.tfm", "c.h5", "p.txt", "q.txt"]
FIELDS = ["u.nii", "u.nii.gz", "u.mha", "u.nrrd"]
#: Voxels of a header's own file.
BESIDE = {"a.mhd": "a.raw", "a.nhdr": "a.raw"}
PARAMETERS = """(Transform "EulerTransform")
(NumberOfParameters 6)
(TransformParameters 0.1 0.2 0.3 1 2 3)
(FixedImageDimension 3)
(MovingImageDimension 3)
(InitialTransformParameterFileName "NoInitialTransform")
(HowToCombineTransforms "Compose")
(CenterOfRotationPoint 1 2 3)
"""
BENDING = f"""(Transform "BSplineTransform")
(FixedImageDimension 3)
(MovingImageDimension 3)
(GridSize 4 4 4)
(GridIndex 0 0 0)
(GridSpacing 3 3 3)
(GridOrigin -3 -3 -3)
(InitialTransformParameterFileName "p.txt")
(TransformParameters {" ".join(["0.5"] * 192)})
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a sound file of every format, and a store."""
    folder = tmp_path_factory.mktemp("sound")
    image = sitk.GetImageFromArray(VOXELS)
    for name in ("a.nii", "a.nii.gz", "a.mha", "raw.mha", "a.nrrd", "raw.nrrd", "a.mhd", "a.nhdr"):
        sitk.WriteImage(image, str(folder / name), useCompression=name in {"a.mha", "a.nrrd"})
    tifffile.imwrite(folder / "a.tif", VOXELS, photometric="minisblack")
    tifffile.imwrite(folder / "z.tif", VOXELS, photometric="minisblack", compression="zlib")
    tifffile.imwrite(folder / "a.ome.tif", VOXELS, ome=True, metadata={"axes": "ZYX"}, compression="zlib")
    tifffile.imwrite(
        folder / "t.tif", np.tile(COLOURS, (5, 5, 1)), tile=(64, 64), photometric="rgb", compression="jpeg"
    )
    for name in ("a.png", "a.jpg", "a.bmp"):
        iio.imwrite(folder / name, COLOURS)
    iio.imwrite(folder / "g.png", COLOURS[..., 0].astype("u2") * 257)
    (folder / "c.png").write_bytes(imagecodecs.png_encode(COLOURS.astype("u2") * 257))
    with h5py.File(folder / "a.h5", "w") as file:
        file["v"] = VOXELS
    blocks.write_image(folder / "s.ome.zarr", blocks.image_of(VOXELS, blocks.Grid.of(VOXELS.shape)))
    turn = sitk.Euler3DTransform((1, 2, 3), 0.1, 0.2, 0.3, (1, 2, 3))
    bend = sitk.BSplineTransformInitializer(image, [3, 3, 3])
    bend.SetParameters(np.random.default_rng(2).random(len(bend.GetParameters())).tolist())
    for name in TRANSFORMS[:8]:
        made = {"e": turn, "b": bend, "c": sitk.CompositeTransform([turn, bend])}[name[0]]
        sitk.WriteTransform(made, str(folder / name))
    (folder / "p.txt").write_text(PARAMETERS)
    (folder / "q.txt").write_text(BENDING)
    field = sitk.GetImageFromArray(np.random.default_rng(3).random((6, 7, 8, 3)).astype("f4"), isVector=True)
    for name in FIELDS:
        sitk.WriteImage(field, str(folder / name))
    return folder


def damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what a file may have become, and how."""
    for tenths in range(10):
        yield f"cut after {tenths} tenths", content[: len(content) * tenths // 10]
    yield "zeros", bytes(len(content))
    yield "another beginning", b"\xff\xfe\xfd\xfc" + content[4:]
    yield "another format", b"hello world\n"


def refused(words: list[str], capfd: pytest.CaptureFixture[str], name: str) -> str | None:
    """Return what a command says where it refuses, in one line that names the file; None where it does not."""
    code = main(words)
    out, err = capfd.readouterr()
    if code == 0:
        return None
    assert code == 2
    assert out == ""
    assert err.startswith("fidopt: ")
    assert err.count("\n") == 1, err
    assert name in err
    assert "Traceback" not in err
    return err


def read(words: list[str], store: Path, capfd: pytest.CaptureFixture[str], name: str) -> np.ndarray | None:
    """Return the voxels that a command makes of a file, None where it refuses it; nothing is left then."""
    shutil.rmtree(store, ignore_errors=True)
    if refused([*words[:-1], str(store), *words[-1].split()], capfd, name) is None:
        return np.asarray(blocks.open_image(store).values)
    assert not store.exists()
    return None


@pytest.mark.parametrize("name", IMAGES)
def test_a_damaged_image_is_refused_or_read_as_it_was(
    sound: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
):
    target, store = tmp_path / name, tmp_path / "o.ome.zarr"
    words = ["convert", f"{target}:v" if name == "a.h5" else str(target), ""]
    for stem in {name, BESIDE.get(name, name)}:
        for other in {name, BESIDE.get(name, name)}:
            shutil.copy(sound / other, tmp_path / other)
        whole = read(words, store, capfd, stem)
        said = 0
        # Numbers without a header are whole numbers whatever stands there: only their end is missed.
        kept = 10 if stem.endswith("raw") else None
        for how, content in islice(damages((sound / stem).read_bytes()), kept):
            (tmp_path / stem).write_bytes(content)
            found = read(words, store, capfd, Path(stem).stem)
            said += found is None
            assert found is None or np.array_equal(found, whole), how
        assert said >= (10 if stem == name else 9)


@pytest.mark.parametrize("name", [*TRANSFORMS, *FIELDS])
def test_a_damaged_transform_is_refused_or_read_as_it_was(
    sound: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
):
    target, store = tmp_path / name, tmp_path / "o.ome.zarr"
    shutil.copy(sound / "p.txt", tmp_path / "p.txt")
    shutil.copy(sound / name, target)
    words = ["field", str(target), f"--like {sound / 's.ome.zarr'}"]
    whole = read(words, store, capfd, name)
    assert whole is not None
    for how, content in damages((sound / name).read_bytes()):
        target.write_bytes(content)
        found = read(words, store, capfd, name)
        # A text whose last number lost its last digits is a whole text with another number.
        assert found is None or np.array_equal(found, whole) or (how.endswith("9 tenths") and name == "c.tfm"), how


@pytest.mark.parametrize("name", [*IMAGES, *TRANSFORMS, *FIELDS])
def test_a_folder_for_a_file_and_a_file_for_a_folder_are_refused(
    sound: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / name).mkdir()
    end = [str(tmp_path / "o.ome.zarr")]
    begin, more = (["convert"], []) if name in IMAGES else (["field"], ["--like", str(sound / "s.ome.zarr")])
    assert refused([*begin, str(tmp_path / name), *end, *more], capfd, name)
    assert refused([*begin, str(sound / name / "x.nii"), *end, *more], capfd, name)
    assert not (tmp_path / "o.ome.zarr").exists()


def test_an_empty_name_is_refused_wherever_one_is_expected(
    sound: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    store, out, turn = str(sound / "s.ome.zarr"), str(tmp_path / "o.ome.zarr"), str(sound / "e.tfm")
    for words in (
        ["info", ""],
        ["pyramid", " "],
        ["convert", "", out],
        ["convert", store, ""],
        ["warp", "", turn, out, "--like", store],
        ["warp", store, "", out, "--like", store],
        ["warp", store, turn, "", "--like", store],
        ["warp", store, turn, out, "--like", ""],
        ["field", "inverse:", out, "--like", store],
    ):
        said = refused(words, capfd, "")
        assert said is not None
        assert "is expected" in said
    assert list(tmp_path.iterdir()) == []


def attempted(read: Callable[[], np.ndarray]) -> tuple[str | None, np.ndarray]:
    """Return what a reader refuses with, or what it reads."""
    try:
        return None, read()
    except (FidoptError, StoreError) as error:
        return str(error), np.empty((0, 3))


def stores(folder: Path) -> list[Path]:
    """Write a store of each version of Zarr and return both."""
    blocks.write_image(folder / "three.ome.zarr", blocks.image_of(VOXELS, blocks.Grid.of(VOXELS.shape)))
    group = zarr.create_group(str(folder / "two.zarr"), zarr_format=2)
    group.create_array("0", shape=VOXELS.shape, chunks=(4, 4, 4), dtype="i2")[:] = VOXELS
    axes = [{"name": name, "type": "space", "unit": "millimeter"} for name in "zyx"]
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 1.0]}]}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    return [folder / "three.ome.zarr", folder / "two.zarr"]


@pytest.mark.parametrize("version", [0, 1])
def test_a_damaged_store_is_refused_or_read_as_it_was(
    tmp_path: Path, version: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from fidopt.images.readers import read_image

    store = stores(tmp_path)[version]
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    for file in [*files[:4], *[file for file in files[4:] if not file.name[0].isdigit()]]:
        before = file.read_bytes()
        for how, content in [*damages(before), *((text, text.encode()) for text in ("[]", "{}", "null", "1", '"a"'))]:
            file.write_bytes(content)
            said, found = attempted(lambda: np.asarray(read_image(store).values))
            assert said is None or (store.name in said and "\n" not in said), how
            assert said is None or ";" in said or "its root attributes" in said, how
            assert said or np.array_equal(found, VOXELS), (file, how)
        file.write_bytes(before)


def series(folder: Path) -> Path:
    """Write a DICOM series of the volume and return its folder."""
    writer = sitk.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    (folder / "series").mkdir()
    for number, plane in enumerate(VOXELS):
        image = sitk.GetImageFromArray(plane)
        for key, value in {
            "0008|0060": "CT",
            "0020|000e": "1.2.3",
            "0020|000d": "1.2",
            "0020|0032": f"0\\0\\{number}",
            "0020|0037": "1\\0\\0\\0\\1\\0",
            "0020|0013": str(number),
            "0008|0018": f"1.2.3.{number}",
        }.items():
            image.SetMetaData(key, value)
        writer.SetFileName(str(folder / "series" / f"{number}.dcm"))
        writer.Execute(image)
    return folder / "series"


@pytest.mark.parametrize("slice_", ["0.dcm", "3.dcm", "5.dcm"])
def test_a_damaged_slice_of_a_series_is_never_left_out(tmp_path: Path, slice_: str, capfd: pytest.CaptureFixture[str]):
    folder, store = series(tmp_path), tmp_path / "o.ome.zarr"
    words = ["convert", str(folder), ""]
    whole = read(words, store, capfd, "series")
    assert np.array_equal(whole, VOXELS)
    before = (folder / slice_).read_bytes()
    for how, content in damages(before):
        (folder / slice_).write_bytes(content)
        found = read(words, store, capfd, "series")
        assert found is None or (how == "another beginning" and np.array_equal(found, whole)), how
    (folder / slice_).write_bytes(before)
    (folder / "notes.txt").write_text("not a slice")
    assert np.array_equal(read(words, store, capfd, "series"), VOXELS)


def test_a_slice_that_is_missing_in_the_middle_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    folder = series(tmp_path)
    (folder / "3.dcm").unlink()
    said = refused(["convert", str(folder), str(tmp_path / "o.ome.zarr")], capfd, "series")
    assert said is not None
    assert "lie 1 mm apart, but 2.dcm and 4.dcm 2 mm: a slice is missing" in said


@pytest.mark.parametrize("name", ["bom", "crlf", "fcsv", "gap", "header", "one", "ras", "semicolon", "short"])
def test_damaged_landmarks_are_refused_in_one_line_or_are_points(
    shared_case: Callable[[str], Path], tmp_path: Path, name: str
):
    path = tmp_path / "points.csv"
    for how, content in damages(shared_case(f"d10_{name}.csv").read_bytes()):
        path.write_bytes(content)
        said, points = attempted(lambda: read_landmarks(path, ndim=3))
        assert said is None or (str(path) in said and "\n" not in said), how
        assert said or (points.shape[1] == 3 and np.isfinite(points).all()), how
