"""Transforms: fixed world points to moving world points, and a bound over a box of voxels; arithmetic only."""

from blocks.transforms.affine import Affine
from blocks.transforms.box import AffineBox
from blocks.transforms.bspline import BSpline
from blocks.transforms.composite import Composite, Stage, Transform, fold
from blocks.transforms.field import DisplacementField, Vectors
from blocks.transforms.window import Window

__all__ = [
    "Affine",
    "AffineBox",
    "BSpline",
    "Composite",
    "DisplacementField",
    "Stage",
    "Transform",
    "Vectors",
    "Window",
    "fold",
]
