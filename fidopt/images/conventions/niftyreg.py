"""NiftyReg's NIfTI files, whose headers say which kind of transform they hold."""

from __future__ import annotations

import numpy as np

from blocks.grid import Grid
from blocks.transforms import BSpline
from fidopt.errors import FieldError
from fidopt.images import nifti
from fidopt.images.conventions.arrays import vectors_of
from fidopt.images.conventions.readings import Pair
from fidopt.images.conventions.table import CONTRACT, CONVENTIONS, Convention

#: The intent's name in a header of NiftyReg's, and its first parameter -> the kind of transform (_reg_maths.h).
INTENT_NAME = b"NREG_TRANS"
KINDS = {
    0: "deformation field",
    1: "displacement field",
    2: "cubic spline",
    3: "deformation of velocities",
    4: "displacement of velocities",
    5: "cubic spline of velocities",
    6: "linear spline",
}
#: The kinds that are read as a field, by what their numbers mean.
_FIELDS = {"deformation field": "niftyreg-deformation", "displacement field": "niftyreg-displacement"}
SPLINE = "cubic spline"


def kind_of(file: nifti.NiftiFile) -> str | None:
    """Return which kind of NiftyReg's transforms a header says the file holds; None where it says nothing of it."""
    if bytes(file.header["intent_name"]).rstrip(b"\0 ") != INTENT_NAME:
        return None
    return KINDS.get(int(file.header["intent_p1"]), f"transform of kind {float(file.header['intent_p1']):g}")


def convention_of(file: nifti.NiftiFile, kind: str | None, asked: Convention) -> Convention:
    """Return what the numbers of a field mean, by its header and by what was asked for.

    Raises
    ------
    FieldError
        When the header says NiftyReg's and another convention was asked for, or says nothing and NiftyReg's was; when
        the file holds no field.
    """
    if kind is None:
        msg = (
            f"{file.name}: its header does not say that NiftyReg wrote it; name what it holds, niftyreg-deformation or"
        )
        raise FieldError(f"{msg} niftyreg-displacement")
    meant = _FIELDS.get(kind)
    if not asked.by_header and asked.name != meant:
        asks = "" if asked is CONTRACT else f", not {asked.tool}'s"
        msg = f"{file.name}: its header says that it is a {kind} of NiftyReg's{asks}: name the convention niftyreg"
        raise FieldError(f"{msg} (`--convention niftyreg`, or niftyreg:FILE)")
    if meant is None:
        msg = f"{file.name}: a {kind} of NiftyReg's is not read as a field; NiftyReg's reg_transform -disp makes one"
        raise FieldError(msg)
    return CONVENTIONS[meant]


def read_spline(file: nifti.NiftiFile) -> BSpline:
    """Return a cubic spline of NiftyReg's: its control points hold the places (RAS) that they go to.

    A uniform cubic spline of the control points' own places is the identity, so that what a control point is moved by
    is the coefficient of a spline of displacements.
    """
    places = np.asarray(vectors_of(file, f"a {SPLINE} of NiftyReg's has five axes"), dtype=np.float64)
    lattice = file.grid(len(places))
    if not np.isfinite(places).all():
        msg = f"{file.name}: its control points must be finite numbers; register the pair again"
        raise FieldError(msg)
    index = np.stack(np.meshgrid(*[np.arange(n) for n in lattice.shape], indexing="ij"), axis=-1)
    points = lattice.world(index.reshape(-1, lattice.ndim))
    reading = CONVENTIONS["niftyreg-deformation"].reading(lattice.ndim)
    moved = reading.displacements(places.reshape(lattice.ndim, -1).T, Pair(lattice, lattice, points))
    coefficients = moved.T.reshape(lattice.ndim, *lattice.shape)
    # The first voxel lies on the edge of what the lattice covers, by a header in float32 a hair outside, where a spline
    # moves nothing: a control point more on every side keeps it in, and weighs nothing anywhere else.
    padded = np.pad(coefficients, [(0, 0), *[(1, 1)] * lattice.ndim], mode="edge")
    origin = lattice.world([-1.0] * lattice.ndim)
    wider = Grid.of(padded.shape[1:], spacing=lattice.spacing, origin=origin.tolist(), direction=lattice.direction)
    return BSpline(wider, padded)
