import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name

import blocks
from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import grid_of, image_of, kind_of, levels_of, open_image, source_of, unit_of
from fidopt.errors import InputError, OutputExistsError, UsageError
from fidopt.images.fields import read_field
from fidopt.images.readers import read_image
from fidopt.images.resampling import warp, write_displacement
from fidopt.images.transforms import read_transform


@pytest.fixture
def pair(tmp_path, oblique, random, monkeypatch):
    """Return a folder with a moving store, a fixed store, a label map and a rigid transform."""
    monkeypatch.chdir(tmp_path)
    moving = Grid.of((9, 8, 7), spacing=(1, 2, 1.5), origin=oblique.origin, direction=oblique.direction)
    labels = random.integers(0, 3, moving.shape).astype(np.uint8)
    write_image("moving.ome.zarr", image_of(random.random(moving.shape).astype(np.float32), moving))
    write_image("labels.ome.zarr", image_of(labels, moving, kind="labels"))
    write_image("fixed.ome.zarr", image_of(np.zeros(oblique.shape, np.uint8), oblique))
    centre = oblique.world((3, 4, 5)).tolist()
    sitk.WriteTransform(sitk.Euler3DTransform(centre, 0.1, -0.2, 0.3, (1, 2, 3)), "rigid.tfm")
    return tmp_path


def test_a_warp_is_the_engine_s_and_keeps_the_fixed_grid(pair, oblique):
    done = warp("moving.ome.zarr", ["rigid.tfm"], "out.ome.zarr", like="fixed.ome.zarr")
    assert done.state == "written"
    expected = blocks.warp(open_image("moving.ome.zarr"), read_transform("rigid.tfm"), oblique)
    out = open_image("out.ome.zarr")
    assert np.array_equal(out.values, expected.values)
    assert grid_of(out) == oblique
    assert unit_of(out) == "mm"
    assert len(levels_of("out.ome.zarr")) == len(levels_of("fixed.ome.zarr"))


def test_label_maps_keep_their_labels_and_their_kind(pair):
    warp("labels.ome.zarr", ["rigid.tfm"], "out.ome.zarr", like="fixed.ome.zarr")
    out = open_image("out.ome.zarr")
    assert kind_of(out) == "labels"
    assert set(np.unique(out.values)) <= {0, 1, 2}
    with pytest.raises(UsageError, match="is a label map, which linear interpolation would mix"):
        warp("labels.ome.zarr", ["rigid.tfm"], "x.ome.zarr", like="fixed.ome.zarr", interpolation="linear")


def test_what_was_made_from_the_same_is_left_alone_and_from_another_refused(pair):
    assert warp("moving.ome.zarr", ["rigid.tfm"], "out.ome.zarr", like="fixed.ome.zarr").state == "written"
    assert warp("moving.ome.zarr", ["rigid.tfm"], "out.ome.zarr", like="fixed.ome.zarr").state == "there already"
    changed = [
        {"transforms": ["inverse:rigid.tfm"]},
        {"transforms": ["rigid.tfm", "rigid.tfm"]},
        {"moving": "labels.ome.zarr"},
        {"like": "moving.ome.zarr"},
        {"interpolation": "cubic"},
    ]
    same = {"moving": "moving.ome.zarr", "transforms": ["rigid.tfm"], "out": "out.ome.zarr", "like": "fixed.ome.zarr"}
    for change in changed:
        with pytest.raises(OutputExistsError, match=r"out\.ome\.zarr is there and was made from something else"):
            warp(**(same | change))
    assert warp(**(same | changed[0]), overwrite=True).state == "written"
    sitk.WriteTransform(sitk.TranslationTransform(3, (1, 2, 3)), "rigid.tfm")
    with pytest.raises(OutputExistsError):
        warp(**(same | changed[0]))


def test_an_elastix_file_s_initial_transform_counts_too(pair):
    text = '(Transform "TranslationTransform")\n(TransformParameters {} 0 0)\n(FixedImageDimension 3)\n'
    (pair / "first.txt").write_text(text.format(1))
    (pair / "t.txt").write_text(text.format(2) + '(InitialTransformParameterFileName "first.txt")\n')
    warp("moving.ome.zarr", ["t.txt"], "out.ome.zarr", like="fixed.ome.zarr")
    (pair / "first.txt").write_text(text.format(5))
    with pytest.raises(OutputExistsError):
        warp("moving.ome.zarr", ["t.txt"], "out.ome.zarr", like="fixed.ome.zarr")


def test_images_in_two_units_are_not_warped_onto_each_other(pair, oblique):
    write_image("um.ome.zarr", image_of(np.zeros(oblique.shape, np.uint8), oblique, unit="um"))
    with pytest.raises(UsageError, match=r"in mm and um\.ome\.zarr in um"):
        warp("moving.ome.zarr", ["rigid.tfm"], "out.ome.zarr", like="um.ome.zarr")


def test_a_transform_of_another_dimension_is_refused_in_one_sentence(pair):
    sitk.WriteTransform(sitk.TranslationTransform(2), "flat.tfm")
    with pytest.raises(InputError, match="the transform has 2 axes"):
        warp("moving.ome.zarr", ["flat.tfm"], "out.ome.zarr", like="fixed.ome.zarr")
    assert not (pair / "out.ome.zarr").exists()


def test_a_warped_image_is_a_store(pair):
    with pytest.raises(UsageError, match="is written as a store"):
        warp("moving.ome.zarr", ["rigid.tfm"], "out.nii.gz", like="fixed.ome.zarr")


@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd", ".ome.zarr"])
def test_a_field_moves_points_as_its_transform_does(pair, oblique, random, ending):
    out = f"u{ending}"
    assert write_displacement(["rigid.tfm"], out, like="fixed.ome.zarr").state == "written"
    points = oblique.world(random.uniform(0, 6, (20, 3)))
    assert np.allclose(read_field(out).points(points), read_transform("rigid.tfm").points(points), atol=1e-4)
    assert write_displacement(["rigid.tfm"], out, like="fixed.ome.zarr").state == "there already"
    with pytest.raises(OutputExistsError, match="is another field"):
        write_displacement(["inverse:rigid.tfm"], out, like="fixed.ome.zarr")
    assert write_displacement(["inverse:rigid.tfm"], out, like="fixed.ome.zarr", overwrite=True).state == "written"


def test_a_field_of_a_chain_is_its_composition(pair, oblique):
    write_displacement(["rigid.tfm", "inverse:rigid.tfm"], "u.nii.gz", like="fixed.ome.zarr")
    assert np.abs(read_field("u.nii.gz").vectors).max() < 1e-5


def test_a_field_s_file_is_read_by_sitk_as_it_was_meant(pair, oblique):
    write_displacement(["rigid.tfm"], "u.nii.gz", like="fixed.ome.zarr")
    image = sitk.ReadImage("u.nii.gz", sitk.sitkVectorFloat64)
    theirs = sitk.DisplacementFieldTransform(image)
    point = oblique.world((3, 4, 5)).tolist()
    rigid = sitk.ReadTransform("rigid.tfm")
    assert np.allclose(theirs.TransformPoint(point), rigid.TransformPoint(point), atol=1e-4)


def test_a_field_in_two_dimensions_has_two_components(tmp_path, oblique_plane, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_image("fixed.ome.zarr", image_of(np.zeros((3, *oblique_plane.shape), np.uint8), oblique_plane, unit="px"))
    sitk.WriteTransform(sitk.TranslationTransform(2, (1.5, -2)), "t.tfm")
    write_displacement(["t.tfm"], "u.nii.gz", like="fixed.ome.zarr")
    field = read_field("u.nii.gz")
    assert [np.unique(component).tolist() for component in field.vectors] == [[1.5], [-2]]


def test_a_field_is_not_written_as_a_picture(pair):
    with pytest.raises(UsageError, match="a field is written as"):
        write_displacement(["rigid.tfm"], "u.png", like="fixed.ome.zarr")


def test_a_store_read_as_labels_is_still_read_by_region(pair):
    image = read_image("moving.ome.zarr", labels=False)
    assert source_of(read_image("labels.ome.zarr", labels=True)).shape == source_of(image).shape


def test_nothing_is_written_over_what_it_is_made_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = image_of(np.ones((4, 5, 6), np.uint8), Grid.of((4, 5, 6)), unit="mm")
    write_image(tmp_path / "a.ome.zarr", image)
    sitk.WriteTransform(sitk.TranslationTransform(3, (1, 0, 0)), "t.tfm")
    with pytest.raises(UsageError, match="is both read and to be written"):
        warp("a.ome.zarr", ["t.tfm"], str(tmp_path / "a.ome.zarr"), like="a.ome.zarr", overwrite=True)
    with pytest.raises(UsageError, match="is both read and to be written"):
        write_displacement(["t.tfm"], "./a.ome.zarr", like="a.ome.zarr", overwrite=True)
    assert open_image("a.ome.zarr").values.all()
