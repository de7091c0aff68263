"""The conventions that fields and transforms are written in, tool by tool.

Each entry was held against what the tool itself writes and against how it warps an image by it
(tests/images/test_tools.py); methods/*/NOTES.md tells of the versions.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from fidopt.errors import UsageError
from fidopt.images.conventions.readings import Frame, Reading

#: How a file's numbers lie: as vectors on a grid that the file states; as an array of voxels that states none, or one
#: that is replaced by the fixed image's; as that array with both directions side by side.
Layout = Literal["field", "array", "mapping"]
#: Where the samples of an array of half the resolution lie: the first and the last on those of the whole one, as
#: scipy's ``zoom`` has them; or each amid the two voxels (an axis) it stands for, as torch's ``interpolate``.
Halves = Literal["corners", "middles"]
#: The signs that turn components along RAS into LPS.
RAS = (-1, -1, 1)


@dataclass(frozen=True)
class Convention:
    """What a tool writes and means.

    Parameters
    ----------
    name
        As options and prefixes have it.
    tool
        In words.
    writes
        Which files are read by it, in words.
    ras
        Whether a field's components go along RAS instead of LPS.
    frame, position
        See :class:`~fidopt.images.conventions.readings.Reading`.
    layout, halves
        How a field's numbers lie, and how those of an array of half the resolution do.
    by_header
        Whether the file's own header says what its numbers are (NiftyReg's), instead of ``frame`` and ``position``.
    matrices
        Whether a transform may be a matrix in text: along RAS whatever fields go along, fixed world -> moving world.
    files
        Where a case's folder holds its transform, beside the contract's ``DVF.*``: ways that are tried in order, each
        of them patterns of files that are composed, the first applied to the fixed point first. Files named as an
        inverse are left out.
    numbered
        Whether the tool numbers files of one pattern, of which the last names those before it.
    """

    name: str
    tool: str
    writes: str
    ras: bool = False
    frame: Frame = "world"
    position: bool = False
    layout: Layout = "field"
    halves: Halves = "middles"
    by_header: bool = False
    matrices: bool = False
    files: tuple[tuple[str, ...], ...] = ()
    numbered: bool = False

    def reading(self, ndim: int) -> Reading:
        """Return how the numbers of a voxel are read, in ``ndim`` dimensions."""
        signs = RAS[:ndim] if self.ras else (1,) * ndim
        return Reading(signs, tuple(range(ndim)), self.frame, position=self.position)


#: The contract's own: what every method here writes, and what is read where no convention is named.
CONTRACT = Convention(
    "fidopt",
    "fidopt",
    "displacements along the world's axes (LPS), in the image's unit: NIfTI (intent 1007), MetaImage, NRRD, OME-Zarr",
)
_ALL = (
    CONTRACT,
    Convention(
        "ants",
        "ANTs",
        "1Warp.nii.gz, 0GenericAffine.mat and both composed, or Composite.h5",
        files=(("*Composite.h5",), ("*Warp.nii.gz", "*Affine.mat"), ("*Warp.nii.gz",), ("*Affine.mat",)),
    ),
    Convention(
        "convexadam",
        "ConvexAdam",
        "voxels along the arrays' axes: NIfTI (x, y, z, 3), .npz or .npy, whole or of half the resolution",
        frame="fixed voxels",
        layout="array",
        files=(("disp*.nii.gz",), ("disp*.npz",), ("*.npy",)),
    ),
    Convention(
        "dipy",
        "DIPY",
        "what write_mapping writes (x, y, z, 3, 2), or get_forward_field's array (x, y, z, 3), with nibabel's affines",
        ras=True,
        layout="mapping",
        files=(("mapping.nii*",), ("*.npy",)),
    ),
    Convention(
        "elastix",
        "elastix",
        "the last TransformParameters file with those it names, or transformix's deformationField",
        files=(("TransformParameters.*.txt",), ("deformationField.*",)),
        numbered=True,
    ),
    Convention(
        "greedy",
        "greedy",
        "warp.nii.gz, the affine matrix in text (RAS), and both composed",
        matrices=True,
        files=(("warp.nii*", "affine.mat"), ("warp.nii*",), ("affine.mat",)),
    ),
    Convention(
        "itk",
        "ITK and SimpleITK",
        "transform files (.tfm, .txt, .h5, .mat), composites among them, or a displacement field",
        files=(("*.h5",), ("*.tfm",), ("*.txt",), ("*.mat",)),
    ),
    Convention("konfai", "KonfAI", "Transform.h5 of IMPACT-Reg, or a displacement field", files=(("Transform.h5",),)),
    Convention(
        "learn2reg",
        "Learn2Reg",
        "voxels along the arrays' axes: NIfTI (x, y, z, 3), or .npz (3, x, y, z) of half the resolution",
        frame="fixed voxels",
        layout="array",
        halves="corners",
    ),
    Convention(
        "niftyreg",
        "NiftyReg",
        "deformation, displacement and cubic spline files as their headers say, and the affine matrix in text (RAS)",
        ras=True,
        by_header=True,
        matrices=True,
        files=(("cpp.nii*",), ("def.nii*",), ("disp.nii*",), ("*ffine.txt",)),
    ),
    Convention(
        "niftyreg-deformation",
        "NiftyReg",
        "a deformation field whose header no longer says so: the place (RAS) that each voxel goes to",
        ras=True,
        position=True,
    ),
    Convention(
        "niftyreg-displacement",
        "NiftyReg",
        "a displacement field whose header no longer says so: along RAS",
        ras=True,
    ),
)
#: Name -> convention.
CONVENTIONS = {one.name: one for one in _ALL}


def convention(name: str) -> Convention:
    """Return the convention of a name.

    Raises
    ------
    UsageError
        When there is none; the message names those there are.
    """
    if name in CONVENTIONS:
        return CONVENTIONS[name]
    close = difflib.get_close_matches(name, CONVENTIONS, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    msg = f"there is no convention {name!r}{meant}; there are: {', '.join(CONVENTIONS)}"
    raise UsageError(msg)


def known_as(reading: Reading) -> tuple[str, ...]:
    """Return the conventions whose fields are read so, other than the contract's; none for the contract's reading."""
    ndim = len(reading.signs)
    if reading == CONTRACT.reading(ndim):
        return ()
    return tuple(one.name for one in _ALL if not one.by_header and one.reading(ndim) == reading)
