"""Large datasets: built block by block, on the world's axes, through alignment and known deformation."""

import io
import json
import shutil

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import tifffile
from hypothesis import given
from hypothesis import strategies as st

from blocks import Affine, Grid, Region, image_of, open_image, warp
from blocks.execute import compute
from blocks.image import grid_of
from fidopt import building, corpus
from fidopt.alignment.headers import aligned
from fidopt.building import large as building_large
from fidopt.building import records
from fidopt.building.appearance import painted, seen
from fidopt.building.world import is_world, world_grid
from fidopt.cluster import connect
from fidopt.descriptors.appearance import Appearance
from fidopt.descriptors.base import parse
from fidopt.descriptors.reference import ImageReference, direction
from fidopt.errors import DescriptorError, InputError, MissingError
from fidopt.images.landmarks import read_landmarks
from fidopt.images.transforms import read_transform
from tests.strategies import QUICK

PREPARE = """
import json, sys
from pathlib import Path
source, target, *cases = sys.argv[1:]
for case in cases:
    folder = Path(target) / case
    (folder / "truth").mkdir(parents=True)
    for path in Path(source).glob("*.json"):
        (folder / path.name.replace("truth-", "truth/")).write_text(path.read_text())
    for path in Path(source).glob("*.csv"):
        (folder / path.name.replace("truth-", "truth/")).write_text(path.read_text())
"""
RECIPE = {"seed": 3, "distance": 12.0, "reach": 3.0, "border": "free", "points": 20}
CASES = {"one": {"source": "tests", "learn2reg": None, "subjects": ["a", "a"]}}


def tiff_bytes(array, **options):
    stream = io.BytesIO()
    tifffile.imwrite(stream, array, **options)
    return stream.getvalue()


def reference(file, **more):
    return json.dumps({"file": file, **more}).encode()


@pytest.fixture
def random():
    """Return random numbers, the same for every test."""
    return np.random.default_rng(17)


@pytest.fixture
def volume(random):
    """Smooth noise of odd sizes, uint16."""
    array = random.random((20, 31, 27))
    for axis in range(3):
        array = sum(np.roll(array, k, axis) for k in range(-2, 3)) / 5
    return np.rint(4000 * (array - array.min()) / np.ptp(array)).astype(np.uint16)


@pytest.fixture
def large(make, volume):
    """Return a function that makes a large dataset of one volume seen twice, with its labels and points."""

    def _make(*, axes="iar", alignment=None, recipe=None, look=None, looking="moving", **changes):
        said = {"spacing": [1.0, 1.5, 2.0], "unit": "mm", "axes": axes}
        files = {f"plane_{k}.tif": tiff_bytes(plane) for k, plane in enumerate(volume)}
        labels = (volume > 2000).astype(np.uint8)
        files["labels.tif"] = tiff_bytes(labels, photometric="minisblack")
        for side in ("fixed", "moving"):
            appearance = {"appearance": look} if look and side == looking else {}
            files[f"{side}.json"] = reference("plane_*.tif", **said, **appearance)
            files[f"truth-{side}_labels.json"] = reference("labels.tif", **said)
            files[f"truth-{side}_landmarks.csv"] = b"x,y,z\n12.0,15.5,20.25\n13.0,9.75,22.5\n"
        truth = {"grade": "synthetic", "by": "t", "checked": "t", "limits": "t", "labels": {"1": "bright"}}
        mode = "as-delivered" if alignment is None else "elastix-rigid"
        changes = {"large": True, "truth": truth, "warp": recipe is not None, "alignment": {"mode": mode}} | changes
        dataset, roots = make(files, prepare=PREPARE, recipe=recipe, cases=CASES, **changes)
        if alignment is not None:
            path = corpus.alignment_path(dataset, "one", roots)
            path.parent.mkdir()
            sitk.WriteTransform(alignment, str(path))
        return dataset, roots

    return _make


def built(dataset, roots):
    building.build(dataset, roots=roots)
    assert building.verify(dataset, roots=roots) == []
    return corpus.case(dataset, "one", roots)


def test_axes_that_are_not_the_world_s_are_brought_there_voxel_by_voxel(large, volume):
    dataset, roots = large(axes="psl")
    case = built(dataset, roots)
    image = open_image(case.fixed)
    # From the back, the top and the left: y, z and x all run the other way.
    expected = volume.transpose(1, 0, 2)[::-1, ::-1, ::-1]
    assert np.array_equal(image.values, expected)
    assert np.array_equal(open_image(case.moving).values, expected)
    assert np.array_equal(open_image(case.label_sets()[""][0]).values, expected > 2000)
    grid = grid_of(image)
    assert (grid.spacing, is_world(grid)) == ((1.0, 2.0, 1.5), True)
    delivered = Grid.of(volume.shape, spacing=(1.0, 1.5, 2.0), direction=direction("psl"))
    assert np.allclose(grid.world([30, 19, 26]), delivered.world([0, 0, 0]))
    assert np.allclose(grid.world([0, 0, 0]), delivered.world([19, 30, 26]))


def test_a_turned_moving_image_is_resampled_as_itk_does_it(large, volume):
    turn = sitk.Euler3DTransform((12, 20, 18), 0.1, -0.2, 0.3, (2.5, -1.0, 0.75))
    dataset, roots = large(alignment=turn)
    case = built(dataset, roots)
    moving = open_image(case.moving)
    grid = grid_of(moving)
    assert is_world(grid)
    assert grid.spacing == (1.0, 1.5, 2.0)
    source = sitk.GetImageFromArray(volume)
    source.SetSpacing((1.0, 1.5, 2.0))
    resample = sitk.ResampleImageFilter()
    resample.SetSize(grid.shape[::-1])
    resample.SetOutputSpacing(grid.spacing)
    resample.SetOutputOrigin(grid.origin)
    resample.SetTransform(turn)
    resample.SetOutputPixelType(sitk.sitkFloat64)
    resample.SetDefaultPixelValue(-1)
    expected = sitk.GetArrayFromImage(resample.Execute(source))
    inside = expected >= 0
    assert np.abs(moving.values - expected)[inside].max() <= 0.5 + 1e-6
    assert len(np.unique(moving.values[~inside])) == 1
    # Every corner voxel of the image as delivered lies inside the new one: nothing is cut.
    corners = [turn.GetInverse().TransformPoint((x, y, z)) for x in (0, 26) for y in (0, 45) for z in (0, 38)]
    assert grid.inside(corners).all()
    resample.SetInterpolator(sitk.sitkNearestNeighbor)
    resample.SetDefaultPixelValue(0)
    labels = sitk.GetImageFromArray((volume > 2000).astype(np.uint8))
    labels.CopyInformation(source)
    resample.SetOutputPixelType(sitk.sitkUInt8)
    found = open_image(case.label_sets()[""][1]).values
    assert np.mean(found != sitk.GetArrayFromImage(resample.Execute(labels))) < 1e-4
    fixed, pairs = (read_landmarks(path, ndim=3) for path in case.landmark_sets()[""])
    assert np.allclose([turn.TransformPoint(p) for p in pairs.tolist()], fixed, atol=1e-9)


def test_a_shifted_moving_image_keeps_every_voxel(large, volume):
    dataset, roots = large(alignment=sitk.TranslationTransform(3, (3.25, -1.5, 7.0)))
    moving = open_image(built(dataset, roots).moving)
    assert np.array_equal(moving.values, volume)
    assert np.allclose(grid_of(moving).origin, (-3.25, 1.5, -7.0))


def test_an_alignment_that_is_not_there_or_not_rigid_is_refused(large):
    dataset, roots = large(alignment=sitk.ScaleTransform(3, (1.1, 1.0, 1.0)))
    with pytest.raises(InputError, match="a rotation and a translation and no more"):
        building.build(dataset, roots=roots)
    before = records.inputs_digest(dataset, roots)
    corpus.alignment_path(dataset, "one", roots).unlink()
    assert records.inputs_digest(dataset, roots) != before
    with pytest.raises(MissingError, match=r"is aligned .elastix-rigid. by a stored transform"):
        building.build(dataset, roots=roots)


def test_the_moving_side_goes_through_the_deformation_and_then_looks_other(large, volume):
    look = {"mix": [[0.5]], "offset": [10.0], "slope": [0.1, 0.0, -0.1], "curve": 0.05, "noise": 4.0, "seed": 1}
    dataset, roots = large(recipe=RECIPE, look=look)
    case = built(dataset, roots)
    assert np.array_equal(open_image(case.fixed).values, volume)
    moving, labels = open_image(case.moving), open_image(case.label_sets()[""][1])
    transform = sitk.ReadTransform(str(case.truth / "deformation.tfm"))
    fixed, pairs = (read_landmarks(path, ndim=3) for path in case.landmark_sets()[""])
    assert len(fixed) == 2 + RECIPE["points"]
    assert np.abs([transform.TransformPoint(point) for point in pairs.tolist()] - fixed).max() < 1e-6
    assert np.linalg.norm(fixed - pairs, axis=1).max() > 0.5
    source = image_of(volume, grid_of(moving))
    known = read_transform(case.truth / "deformation.tfm")
    warped = compute(warp(source, known, source))
    inside = np.s_[4:-4, 4:-4, 4:-4]
    whole = seen(warped, parse(Appearance, json.dumps(look), where="look"), name="tiny:one")
    assert np.array_equal(moving.values[inside], whole.values[inside])
    nearest = warp(image_of((volume > 2000).astype(np.uint8), grid_of(moving)), known, source, interpolation="nearest")
    assert np.array_equal(labels.values, compute(nearest).values)


def test_an_appearance_that_does_not_fit_the_moving_image_or_is_another_s_is_refused(large):
    dataset, roots = large(look={"mix": [[1.0, 0.0]], "offset": [1.0, 2.0], "slope": [0.1]})
    with pytest.raises(InputError) as caught:
        building.build(dataset, roots=roots)
    assert str(caught.value).splitlines() == [
        "tiny/one/moving.json: appearance.mix: must have 1 row of 1 for this image, got rows of [2]",
        "tiny/one/moving.json: appearance.offset: must have 1 number for this image, got 2",
        "tiny/one/moving.json: appearance.slope: must have 3 numbers for this image, got 1",
    ]
    dataset, roots = large(look={"offset": [1.0]}, looking="fixed")
    with pytest.raises(InputError, match=r"tiny/one/fixed.json: appearance: is the moving image's alone"):
        building.build(dataset, roots=roots)


def test_a_slide_of_two_stains_is_built_in_its_micrometres(make, random):
    picture = np.full((90, 140, 3), 235, np.uint8)
    picture[20:70, 30:110] = random.integers(60, 150, (50, 80, 3))
    metadata = {"axes": "YXS", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    files = {"slide.ome.tif": tiff_bytes(picture, tile=(32, 32), photometric="rgb", metadata=metadata, ome=True)}
    files |= {f"{side}.json": reference("slide.ome.tif") for side in ("fixed", "moving")}
    flat = {"dimension": 2, "unit": "um", "large": True, "warp": True}
    flat |= {"modalities": {"fixed": "histology", "moving": "histology"}}
    dataset, roots = make(files, prepare=PREPARE, recipe=RECIPE | {"distance": 8.0, "reach": 2.0}, cases=CASES, **flat)
    case = built(dataset, roots)
    image = open_image(case.fixed)
    assert np.array_equal(image.values, np.moveaxis(picture, -1, 0))
    assert (grid_of(image).spacing, image.attrs["unit"]) == ((0.5, 0.5), "um")
    points, _ = (read_landmarks(path, ndim=2) for path in case.landmark_sets()[""])
    # In the tissue, which is dark, and not on the glass.
    assert ((points > (13, 8)) & (points < (57, 37))).all()
    assert not np.array_equal(open_image(case.moving).values, image.values)


def test_an_oblique_image_is_refused_unless_an_alignment_turned_it(make, volume, tmp_path):
    image = sitk.GetImageFromArray(volume)
    image.SetDirection(sitk.Euler3DTransform((0, 0, 0), 0.0, 0.0, 0.2, (0, 0, 0)).GetMatrix())
    copies = "import shutil\nfor name in ('fixed.mha', 'moving.mha'):\n"
    copies += "    shutil.copy(Path(source) / 'v.mha', folder / name)\n"
    sitk.WriteImage(image, str(tmp_path / "v.mha"))
    dataset, roots = make({"v.mha": tmp_path / "v.mha"}, prepare=PREPARE + copies, cases=CASES, large=True)
    with pytest.raises(InputError, match="the axes of a large image lie along the world's"):
        building.build(dataset, roots=roots)


@QUICK
@given(st.data())
def test_a_part_looks_as_the_whole_does_there(data):
    shape = data.draw(st.sampled_from([(70, 90), (66, 65, 20)]))
    channels = data.draw(st.sampled_from([None, 2]))
    random = np.random.default_rng(1)
    voxels = random.integers(0, 255, shape if channels is None else (channels, *shape)).astype(np.uint8)
    mix = ((0.5,),) if channels is None else ((0.5, 0.4), (0.1, 0.7))
    look = Appearance(mix=mix, offset=(3.0,) * len(mix), slope=(0.1, -0.05, 0.2)[: len(shape)], curve=0.1, noise=3.0)
    whole = painted(voxels, Region.of(shape), shape, appearance=look, name="d:c")
    start = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    stop = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(start, shape, strict=True))
    region = Region(start, stop)
    index = region.slices if channels is None else (slice(None), *region.slices)
    part = painted(voxels[index], region, shape, appearance=look, name="d:c")
    assert np.array_equal(part, whole[index])


def test_the_noise_of_a_seed_is_known_by_its_numbers():
    flat = np.full((600, 600), 100.0)
    look = Appearance(noise=2.0, seed=5)
    noisy = painted(flat, Region.of(flat.shape), flat.shape, appearance=look, name="d:c")
    assert noisy.std() == pytest.approx(2.0, rel=0.01)
    assert noisy.mean() == pytest.approx(100.0, abs=0.02)
    assert noisy[0, :3] == pytest.approx([98.65761833758118, 98.70556053981042, 100.1754356882016], abs=1e-9)
    other = painted(flat, Region.of(flat.shape), flat.shape, appearance=look, name="d:other")
    assert abs(np.corrcoef(noisy.ravel(), other.ravel())[0, 1]) < 0.01


def test_a_grid_goes_where_its_alignment_takes_it():
    grid = Grid.of((10, 20, 30), spacing=(1.0, 2.0, 3.0), origin=(5.0, 6.0, 7.0))
    quarter = Affine.rigid([[0, -1, 0], [1, 0, 0], [0, 0, 1]], (1.0, 2.0, 3.0))
    moved = aligned(grid, quarter)
    assert np.allclose(quarter.points(moved.world([[3, 4, 5]])), grid.world([[3, 4, 5]]))
    world = world_grid(moved)
    assert (world.shape, world.spacing) == ((10, 30, 20), (2.0, 1.0, 3.0))
    assert np.allclose(np.sort(moved.world([[0, 0, 0], [9, 19, 29]]), axis=0), world.world([[0, 0, 0], [9, 29, 19]]))


def test_a_reference_s_faults_are_said():
    for text, why in (
        ('{"file": "a.tif", "axes": "psa"}', "axes: must name each of left-right, front-back and up-down once"),
        ('{"file": "a.tif", "axes": "xyz"}', "axes: must be three of l, r, a, p, s, i"),
        ('{"file": "../a.tif"}', "file: must lie in the folder of the source files"),
        ('{"file": "a.tif", "spacing": [1, 0]}', "must be positive"),
    ):
        with pytest.raises(DescriptorError, match=why):
            parse(ImageReference, text, where="fixed.json")


def test_a_cluster_builds_the_same_to_the_byte(large):
    dataset, roots = large(recipe=RECIPE)
    expected = building.build(dataset, roots=roots)[0].checksums
    with connect(dashboard=True, workers=1) as client:
        again = building.build(dataset, roots=roots, overwrite=True, client=client)[0]
        assert client.cluster.scheduler.transition_counter > 0
    assert (again.done, again.checksums) == ("built", expected)


def test_an_interrupted_build_is_taken_up(large, monkeypatch):
    dataset, roots = large(axes="psl", recipe=RECIPE)
    expected = records.file_digests(corpus.case_dir(roots, dataset, "one")) if built(dataset, roots) else {}
    shutil.rmtree(roots.corpus)
    write, wrote = building_large.write_image, []

    def stopping(path, *args, **options):
        if len(wrote) == stop:
            raise KeyboardInterrupt
        wrote.append(str(path))
        return write(path, *args, **options)

    monkeypatch.setattr(building_large, "write_image", stopping)
    for stop in range(1, 6):
        with pytest.raises(KeyboardInterrupt):
            building.build(dataset, roots=roots)
        assert len(wrote) == stop
    stop = -1
    building.build(dataset, roots=roots)
    assert len(wrote) == len(set(wrote)) > 5
    (roots.corpus / "tiny" / ".unfinished-one-0a1b").mkdir()
    assert building.build(dataset, roots=roots)[0].done == "kept"
    assert sorted(path.name for path in (roots.corpus / "tiny").iterdir()) == [".built", "one"]
    assert records.file_digests(corpus.case_dir(roots, dataset, "one")) == expected
