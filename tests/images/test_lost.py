"""What is not there, or no number, is refused and never read as zero."""

import h5py
import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

import blocks
from blocks.grid import Grid
from fidopt.cli import main
from fidopt.errors import InputError
from fidopt.images.readers import read_image


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "a.ome.zarr"
    blocks.write_image(path, blocks.image_of(np.ones((70, 300, 5), np.uint8), Grid.of((70, 300, 5))))
    return path


def test_a_store_that_lost_a_shard_is_not_read_as_zeros(store, tmp_path, capsys):
    whole = {file: file.read_bytes() for file in sorted(store.rglob("*")) if file.is_file()}
    lost = store / "0" / "c" / "0" / "1" / "0"
    lost.unlink()
    with pytest.raises(InputError, match="0/c/0/1/0 is not there, and its voxels would be read as zeros"):
        read_image(store)
    out = str(tmp_path / "b.nii.gz")
    assert main(["convert", str(store), out]) == 2
    assert not (tmp_path / "b.nii.gz").exists()
    assert main(["pyramid", str(store)]) == 2
    assert capsys.readouterr().err.count("0/c/0/1/0 is not there") == 2
    # The coarser levels are as they were: nothing was begun.
    assert {file: file.read_bytes() for file in whole if file != lost} == {f: b for f, b in whole.items() if f != lost}
    lost.write_bytes(whole[lost])
    assert (read_image(store).values == 1).all()


def test_a_dataset_without_voxels_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["empty"] = np.zeros((0, 3, 3))
    with pytest.raises(InputError, match=r"at least one voxel an axis is expected, got \(0, 3, 3\)"):
        read_image(f"{tmp_path / 'a.h5'}:empty")


@pytest.mark.parametrize(("key", "value"), [("Offset", "nan 0 0"), ("ElementSpacing", "1 inf 1"), ("Offset", "0 x 0")])
def test_a_metaimage_whose_geometry_is_no_number_is_refused(tmp_path, key, value):
    path = tmp_path / "a.mha"
    sitk.WriteImage(sitk.GetImageFromArray(np.zeros((2, 3, 4), np.uint8)), str(path))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(f"{key} = {value}".encode() if li.startswith(key.encode()) else li for li in lines))
    with pytest.raises(InputError, match=f"its header says {key} = {value}, finite numbers are expected"):
        read_image(path)


def test_a_nifti_that_adds_infinity_is_refused(tmp_path):
    image = nib.Nifti1Image(np.zeros((2, 3, 4), np.int16), np.eye(4))
    nib.save(image, tmp_path / "a.nii")
    data = bytearray((tmp_path / "a.nii").read_bytes())
    data[112:120] = np.array([2.0, np.inf], "<f4").tobytes()
    (tmp_path / "a.nii").write_bytes(data)
    with pytest.raises(InputError, match="scl_inter = inf"):
        read_image(tmp_path / "a.nii")
