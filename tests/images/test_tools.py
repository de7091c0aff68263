"""What the tools themselves write of a pair of known motion, read by their conventions.

Each tool registers the pair on two grids (oblique, axes permuted, uneven spacing) and the plane that is turned by 215
degrees, writes its transforms and warps the moving image by them. Read as the table has it, they must find the motion,
and warp the moving image to the tool's own result. The tools are those in the environments of the methods; one that
was not made is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import blocks
from blocks import grid_of
from fidopt import resources
from fidopt.check.scenes import scenes
from fidopt.images.readers import read_image
from fidopt.images.transforms import read_transforms
from fidopt.images.writers import write_file
from fidopt.runner import environment, methods

#: Tools whose runs take a while.
SLOW = {"ants", "convexadam_mind", "elastix"}
PAIRS = {scene.name: scene for scene in scenes((2, 3))}
SCENES = {3: PAIRS["two_grids"], 2: PAIRS["colour"]}
FIXED, MOVING = "fixed.nii.gz", "moving.nii.gz"
#: How far the motion may be missed, in mm, and a warped image be off, in grey values of 20 to 235.
NEAR, SAME = 1.5, 0.02
#: What a script says of a volume, and of a plane.
PLANE = {"Greedy3D": "Greedy2D", "2x2x2": "2x2", "-dof 12": "-dof 6", "ality 3": "ality 2", "-d 3": "-d 2"}
NIFTYREG = f"""
set -e
run() {{ "$TOOL/nifty_reg/$1" "${{@:2}}" -omp 1 > /dev/null; }}
run reg_aladin -ref {FIXED} -flo {MOVING} -aff affine.txt -res unused.nii
run reg_f3d -ref {FIXED} -flo {MOVING} -cpp cpp.nii -res unused.nii
run reg_transform -ref {FIXED} -def cpp.nii def.nii
run reg_transform -ref {FIXED} -disp cpp.nii disp.nii
run reg_resample -ref {FIXED} -flo {MOVING} -trans affine.txt -res by_affine.nii -inter 1
run reg_resample -ref {FIXED} -flo {MOVING} -trans cpp.nii -res by_spline.nii -inter 1
"""
GREEDY = f"""
from picsl_greedy import Greedy3D
greedy, pair = Greedy3D(), "-i {FIXED} {MOVING} -m NCC 2x2x2 -threads 1 -seed 1"
greedy.execute(f"-a -dof 12 {{pair}} -n 60x30 -ia-identity -o affine.mat")
greedy.execute(f"{{pair}} -n 60x30x5 -it affine.mat -o warp.nii.gz")
greedy.execute("-rf {FIXED} -rm {MOVING} by_both.nii.gz -r warp.nii.gz affine.mat -rc composed.nii.gz -threads 1")
"""
DIPY = f"""
import nibabel
from dipy.align import write_mapping
from dipy.align.imwarp import SymmetricDiffeomorphicRegistration
from dipy.align.metrics import CCMetric
fixed, moving = nibabel.load("{FIXED}"), nibabel.load("{MOVING}")
registration = SymmetricDiffeomorphicRegistration(CCMetric(3))
grids = dict(static_grid2world=fixed.affine, moving_grid2world=moving.affine)
mapping = registration.optimize(fixed.get_fdata(), moving.get_fdata(), **grids)
write_mapping(mapping, "mapping.nii.gz")
nibabel.save(nibabel.Nifti1Image(mapping.transform(moving.get_fdata()), fixed.affine), "by_mapping.nii.gz")
import numpy
numpy.save("forward.npy", mapping.get_forward_field())
"""
ANTS = f"""
from ants.internal import get_lib_fn
def call(program, words):
    assert get_lib_fn(program)(words.split()) == 0
for composite in (0, 1):
    call("antsRegistration", f'''--dimensionality 3 -r Identity --output [out{{composite}}_] --float {{composite}}
        --transform Affine[0.1] --metric MI[{FIXED},{MOVING},1,32,Regular,0.25] --convergence [20x5,1e-6,10]
        --shrink-factors 2x1 --smoothing-sigmas 1x0vox
        --transform SyN[0.2,3,0] --metric CC[{FIXED},{MOVING},1,2] --convergence [20x0,1e-6,10]
        --shrink-factors 2x1 --smoothing-sigmas 1x0vox --random-seed 1 --write-composite-transform {{composite}}''')
pair = "-d 3 -i {MOVING} -r {FIXED}"
call("antsApplyTransforms", pair + " -t out0_1Warp.nii.gz -t out0_0GenericAffine.mat -o by_both.nii.gz")
call("antsApplyTransforms", pair + " -t out1_Composite.h5 -o by_composite.nii.gz")
"""
ELASTIX = f"""
import itk, os
fixed, moving = itk.imread("{FIXED}", itk.F), itk.imread("{MOVING}", itk.F)
parameters = itk.ParameterObject.New()
for name, steps in (("affine", 40), ("bspline", 20)):
    one = parameters.GetDefaultParameterMap(name, 2, 12.0)
    own = {{"RandomSeed": "1", "AutomaticTransformInitialization": "false", "FinalBSplineInterpolationOrder": "1"}}
    own |= {{"ITKTransformOutputFileNameExtension": "h5", "WriteITKCompositeTransform": "true"}}
    for key, value in (own | {{"MaximumNumberOfIterations": str(steps)}}).items():
        one[key] = (value,)
    parameters.AddParameterMap(one)
method = itk.ElastixRegistrationMethod.New(fixed, moving)
method.SetParameterObject(parameters)
method.SetNumberOfThreads(1)
method.SetOutputDirectory(os.getcwd())
method.UpdateLargestPossibleRegion()
itk.imwrite(method.GetOutput(), "by_parameters.nii.gz")
transformix = itk.TransformixFilter.New(moving)
transformix.SetTransformParameterObject(method.GetTransformParameterObject())
transformix.SetComputeDeformationField(True)
transformix.SetOutputDirectory(os.getcwd())
transformix.UpdateLargestPossibleRegion()
itk.imwrite(transformix.GetOutputDeformationField(), "deformationField.mha")
"""
CONVEXADAM = f"""
import nibabel, numpy, torch
from convexAdam.apply_convex import apply_convex
from convexAdam.convex_adam_MIND import convex_adam_pt
fixed, moving = (nibabel.load(name).get_fdata(dtype="float32") for name in ("{FIXED}", "{MOVING}"))
steps = convex_adam_pt(torch.from_numpy(fixed), torch.from_numpy(moving), device=torch.device("cpu"))
affine = nibabel.load("{FIXED}").affine
nibabel.save(nibabel.Nifti1Image(steps, affine), "disp.nii.gz")
numpy.savez_compressed("disp.npz", steps)
nibabel.save(nibabel.Nifti1Image(apply_convex(steps, moving), affine), "by_steps.nii.gz")
"""
#: Method -> its script, and which of its files make which of its warped images.
TOOLS = {
    "niftyreg": (
        NIFTYREG,
        [
            (["niftyreg:affine.txt"], "by_affine.nii"),
            (["niftyreg:cpp.nii"], "by_spline.nii"),
            (["niftyreg:def.nii"], "by_spline.nii"),
            (["niftyreg:disp.nii"], "by_spline.nii"),
        ],
    ),
    "greedy": (
        GREEDY,
        [
            (["greedy:warp.nii.gz", "greedy:affine.mat"], "by_both.nii.gz"),
            (["greedy:composed.nii.gz"], "by_both.nii.gz"),
        ],
    ),
    "dipy_syn": (
        DIPY,
        [(["dipy:mapping.nii.gz"], "by_mapping.nii.gz"), (["dipy:forward.npy"], "by_mapping.nii.gz")],
    ),
    "ants": (
        ANTS,
        [
            (["ants:out0_1Warp.nii.gz", "ants:out0_0GenericAffine.mat"], "by_both.nii.gz"),
            (["ants:out1_Composite.h5"], "by_composite.nii.gz"),
        ],
    ),
    "convexadam_mind": (
        CONVEXADAM,
        [(["convexadam:disp.nii.gz"], "by_steps.nii.gz"), (["learn2reg:disp.npz"], "by_steps.nii.gz")],
    ),
    "elastix": (
        ELASTIX,
        [
            (["elastix:TransformParameters.1.txt"], "by_parameters.nii.gz"),
            (["elastix:deformationField.mha"], "by_parameters.nii.gz"),
            (["elastix:TransformParameters.1-Composite.h5"], "by_parameters.nii.gz"),
        ],
    ),
}


def program(name: str) -> tuple[list[str], Path]:
    """Return the command that a method's script is handed to, and where its tool lies."""
    roots = resources.roots()
    chosen = methods.find(name, roots)
    if environment.is_ready(chosen.method, chosen.folder, roots):
        where = environment.place(chosen.method, roots)
        return (["bash", "-c"] if name == "niftyreg" else [str(where / "bin" / "python"), "-c"]), where
    if name == "elastix":
        # The alignment's own elastix is the same program.
        pytest.importorskip("itk")
        return [sys.executable, "-c"], Path(sys.prefix)
    pytest.skip(f"the environment of {name} was not made: fidopt setup {name}")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TOOLS])
@pytest.mark.parametrize("ndim", [2, 3])
def test_what_a_tool_writes_finds_the_motion_and_warps_as_the_tool_does(name, ndim, tmp_path, monkeypatch):
    if ndim == 2 and name in {"dipy_syn", "convexadam_mind"}:
        pytest.skip(f"{name} writes such files of volumes alone")
    # ConvexAdam knows of no grid but its arrays'.
    scene = PAIRS["one_grid"] if name == "convexadam_mind" else SCENES[ndim]
    script, pairs = TOOLS[name]
    for of_volume, of_plane in PLANE.items() if ndim == 2 else ():
        script = script.replace(of_volume, of_plane)
    words, where = program(name)
    monkeypatch.chdir(tmp_path)
    images = scene.images()
    for role, grid in (("fixed", scene.fixed), ("moving", scene.moving)):
        grey = images[role] if images[role].ndim == ndim else images[role].mean(axis=0).astype(np.float32)
        write_file(f"{role}.nii.gz", blocks.image_of(grey, grid, unit="mm"))
    told = {**os.environ, "TOOL": str(where), "OMP_NUM_THREADS": "1", "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS": "1"}
    done = subprocess.run([*words, script], env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    fixed, moving, inside = read_image(FIXED), read_image(MOVING), scene.inside()
    for sources, theirs in pairs:
        transform = read_transforms(sources, fixed=grid_of(fixed))
        points = scene.pair().points
        missed = np.linalg.norm(transform.points(points) - points - np.array(scene.motion), axis=1)
        assert missed.mean() < NEAR, sources
        ours = np.asarray(blocks.warp(moving, transform, fixed).astype(np.float64))[inside]
        off = np.abs(ours - warped_by(theirs)[inside])
        # NiftyReg writes NaN where the moving image has no voxel.
        assert np.nanmax(off) < SAME, (sources, np.nanmax(off))
        assert np.isfinite(off).mean() > 0.9


def warped_by(name: str) -> np.ndarray:
    """Return the voxels of a tool's own image ([z,] y, x), with NaN where it has them."""
    import nibabel

    return np.asarray(nibabel.load(name).dataobj, dtype=np.float64).squeeze().T
