"""Bytes a task needs, from shapes alone: known before it runs, and tested against what it takes."""

from __future__ import annotations

#: Positions, fractions, places and neighbours of the rows in hand, whatever the block.
_BUFFERS = 4 << 20
#: Bytes of a coefficient of the cubic interpolation, float64.
_COEFFICIENT = 8
#: A block of the lattice that reductions run over, 66 voxels a side with its halo: its vectors and determinants in
#: float64, and the logarithms taken from them.
_LATTICE_BLOCK = 66**3 * 8 * 8
#: Bytes a voxel's corner: its neighbourhood in either map, and the distance to the nearest surface along one axis.
_CORNER = 2 + 4
#: Bytes of a corner on a surface: its place, its distance and its area.
_SURFACE = 8 + 8 + 8
#: Bytes of a corner on a surface whose distances are put in order: its rank, and its share of the area twice.
_SORTED = 8 + 8 + 8


class MemoryBudgetError(ValueError):
    """Work that needs more memory than it may use, in however small parts; the message says how much."""


def warp_bytes(
    read: int,
    written: int,
    *,
    itemsize: int,
    channels: int = 1,
    cubic: bool = False,
    copied: bool = True,
    widened: int = 0,
    lattice: int = 0,
    chunk: int = 0,
) -> int:
    """Return the most bytes that warping one region holds at a time.

    Parameters
    ----------
    read, written
        Voxels of the input box and of the output region, without channels.
    itemsize
        Bytes of a voxel.
    channels
        Number of channels.
    cubic
        Whether the interpolation needs spline coefficients of the box; they are made a channel at a time.
    copied
        Whether the input box is read from a store; an array in memory is looked at where it is.
    widened
        Bytes of the type that voxels are computed in, where it is not their own (float16 in float32).
    lattice
        Bytes of what is read of a lazy displacement field.
    chunk
        Bytes of one decoded chunk of the input with all its channels, held while the box is assembled.
    """
    box = read * (itemsize + widened) * channels if copied else 0
    coefficients = read * _COEFFICIENT if cubic else 0
    return box + chunk + coefficients + written * (itemsize + widened) * channels + lattice + _BUFFERS


def displacement_bytes(written: int, *, ndim: int, itemsize: int, lattice: int = 0) -> int:
    """Return the most bytes that computing the displacements of one region holds at a time.

    Parameters
    ----------
    written
        Voxels of the output region.
    ndim
        Components of a displacement.
    itemsize
        Bytes of a component.
    lattice
        Bytes of what is read of a lazy displacement field.
    """
    return written * ndim * itemsize + lattice + _BUFFERS


def regularity_bytes(box: int, *, ndim: int, itemsize: int, masked: int = 0, chunk: int = 0) -> int:
    """Return the most bytes that measuring the determinants of one tile of a field holds at a time.

    Parameters
    ----------
    box
        Voxels of the tile and of the halo around it.
    ndim
        Components of a displacement.
    itemsize
        Bytes of a component.
    masked
        Bytes of the tile's masks.
    chunk
        Bytes of one decoded chunk of a stored field, held while the box is assembled.
    """
    return box * ndim * itemsize + masked + chunk + _LATTICE_BLOCK


def overlap_bytes(voxels: int, *, itemsize: int) -> int:
    """Return the most bytes that counting the labels of two blocks of so many voxels holds at a time.

    Parameters
    ----------
    voxels
        Of one block.
    itemsize
        Bytes of a voxel of the wider map; both are turned into one type, which may be twice as wide.
    """
    return 2 * voxels * (itemsize + min(2 * itemsize, 8)) + _BUFFERS


def surface_bytes(corners: int, *, voxels: int) -> int:
    """Return the most bytes that the distances between two surfaces of one label hold at a time.

    Parameters
    ----------
    corners
        Corners of the voxels of the label's joint box, any of which may lie on a surface.
    voxels
        Bytes of both maps' voxels in the box, which are copied out of the maps.
    """
    return voxels + corners * (_CORNER + 2 * _SURFACE + _SORTED) + _BUFFERS
