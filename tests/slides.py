"""A slide of any size and its second stain, made tile by tile: a pair whose every point is known.

``python tests/slides.py FOLDER HEIGHT WIDTH`` writes ``fixed.ome.tif`` and ``moving.ome.tif`` (RGB, tiled, pyramidal),
``rigid.tfm``, ``fixed.csv`` and ``moving.csv``. The tissue is a function of a point: cells and stroma from hashed
lattices. The second stain shows at T(y) the tissue of y + b(y): T is rigid, what an alignment takes out; b is smooth
and one-to-one, what a registration has to find.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the package's customary name
import tifffile

#: Micrometres a pixel, and pixels a side of a tile.
PIXEL, TILE = 0.5, 512
#: How much of the light each stain lets through where the tissue is dense, and where a nucleus lies; R, G, B.
STAINS = {
    "fixed": ((0.80, 0.45, 0.65), (0.45, 0.25, 0.60)),
    "moving": ((0.75, 0.70, 0.60), (0.50, 0.35, 0.25)),
}


@dataclass(frozen=True)
class Pair:
    """The geometry of a pair of slides of one size, in micrometres.

    Parameters
    ----------
    height, width
        Pixels.
    """

    height: int
    width: int

    @property
    def wave(self) -> float:
        """Wavelength of the deformation."""
        return min(self.height, self.width) * PIXEL / 2

    @property
    def reach(self) -> float:
        """Largest displacement along an axis."""
        return self.wave / 60

    @property
    def centre(self) -> tuple[float, float]:
        """Centre of the slides."""
        return (self.width - 1) * PIXEL / 2, (self.height - 1) * PIXEL / 2

    @property
    def rigid(self) -> sitk.Euler2DTransform:
        """T: points of the aligned frame, which is the fixed one's -> points of the moving slide."""
        shift = min(self.height, self.width) * PIXEL / 50
        return sitk.Euler2DTransform(self.centre, math.radians(4.0), (shift, -0.5 * shift))

    def bend(self, points: np.ndarray) -> np.ndarray:
        """Return y + b(y) of points (n, 2)."""
        k = 2 * math.pi / self.wave
        x, y = points[:, 0], points[:, 1]
        return points + self.reach * np.stack([np.sin(k * y + 0.5), np.sin(k * x + 1.0)], axis=1)

    def unbend(self, points: np.ndarray) -> np.ndarray:
        """Return the y whose y + b(y) are given points; b is steep by a tenth, so that each step takes a digit."""
        found = points.copy()
        for _ in range(40):
            found = found + points - self.bend(found)
        return found


@numba.njit(cache=True)
def _hash(i, j, salt):  # type: ignore[no-untyped-def]
    """Return a number in [0, 1) for a lattice point."""
    h = np.uint64(i * 0x9E3779B1 + j * 0x85EBCA77 + salt * 0xC2B2AE3D) & np.uint64(0xFFFFFFFF)
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x2C1B3C6D)) & np.uint64(0xFFFFFFFF)
    h = ((h ^ (h >> np.uint64(12))) * np.uint64(0x297A2D39)) & np.uint64(0xFFFFFFFF)
    return float(h ^ (h >> np.uint64(15))) / 4294967296.0


@numba.njit(cache=True)
def _smooth(x, y, side, salt):  # type: ignore[no-untyped-def]
    """Return value noise of a lattice of that side."""
    i, j = math.floor(x / side), math.floor(y / side)
    u, v = x / side - i, y / side - j
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    top = _hash(i, j, salt) * (1 - u) + _hash(i + 1, j, salt) * u
    bottom = _hash(i, j + 1, salt) * (1 - u) + _hash(i + 1, j + 1, salt) * u
    return top * (1 - v) + bottom * v


@numba.njit(cache=True, nogil=True)
def _paint(out, first, step, matrix, offset, wave, reach, extent, dense, nuclear):  # type: ignore[no-untyped-def]
    """Paint a tile: the tissue at bend(matrix (x, y) + offset) of each of its pixels."""
    k = 2 * math.pi / wave
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            px, py = first[0] + column * step, first[1] + row * step
            x = matrix[0, 0] * px + matrix[0, 1] * py + offset[0]
            y = matrix[1, 0] * px + matrix[1, 1] * py + offset[1]
            x, y = x + reach * math.sin(k * y + 0.5), y + reach * math.sin(k * x + 1.0)
            inside = 1 - ((x / extent[0] - 0.5) ** 2 + (y / extent[1] - 0.5) ** 2) / 0.16
            inside += 0.8 * (_smooth(x, y, extent[0] / 7, 1) - 0.5)
            if inside <= 0:
                out[row, column, 0] = out[row, column, 1] = out[row, column, 2] = 242
                continue
            amount = min(inside * 6, 1.0) * (0.35 + 0.65 * _smooth(x, y, extent[0] / 40, 2) * _smooth(x, y, 25.0, 3))
            cell = 12.0
            i, j = math.floor(x / cell), math.floor(y / cell)
            cx, cy = (i + 0.3 + 0.4 * _hash(i, j, 4)) * cell, (j + 0.3 + 0.4 * _hash(i, j, 5)) * cell
            radius = 2.0 + 1.5 * _hash(i, j, 6)
            blot = min(max(radius - math.hypot(x - cx, y - cy), 0.0), 1.0)
            for c in range(3):
                light = 1 - amount * (1 - dense[c])
                out[row, column, c] = int(242 * light * (1 - blot * (1 - nuclear[c])))


def tiles(pair: Pair, side: str, level: int, tile: int) -> Iterator[np.ndarray]:
    """Yield the tiles of one level of one slide, row by row."""
    matrix, offset = np.eye(2), np.zeros(2)
    reach = 0.0
    if side == "moving":
        back = pair.rigid.GetInverse()
        offset = np.array(back.TransformPoint((0.0, 0.0)))
        matrix = np.stack([np.array(back.TransformPoint(p)) - offset for p in ((1.0, 0.0), (0.0, 1.0))], axis=1)
        reach = pair.reach
    step = PIXEL * 2**level
    middle = PIXEL * (2**level - 1) / 2
    extent = np.array([pair.width * PIXEL, pair.height * PIXEL])
    dense, nuclear = (np.array(values) for values in STAINS[side])
    for top in range(0, -(-pair.height // 2**level), tile):
        for left in range(0, -(-pair.width // 2**level), tile):
            out = np.empty((tile, tile, 3), np.uint8)
            first = np.array([middle + left * step, middle + top * step])
            _paint(out, first, step, matrix, offset, pair.wave, reach, extent, dense, nuclear)
            yield out


def write_slide(path: Path, pair: Pair, side: str, *, tile: int = TILE) -> None:
    """Write one slide as a tiled, pyramidal OME-TIFF; one tile is in memory at a time."""
    levels = max(0, math.ceil(math.log2(max(pair.height, pair.width) / 1024)))
    metadata = {"axes": "YXS", "PhysicalSizeX": PIXEL, "PhysicalSizeY": PIXEL}
    options = {"tile": (tile, tile), "photometric": "rgb", "compression": "jpeg", "compressionargs": {"level": 92}}
    with tifffile.TiffWriter(path, bigtiff=True, ome=True) as file:
        for level in range(levels + 1):
            shape = (-(-pair.height // 2**level), -(-pair.width // 2**level), 3)
            said = {"subifds": levels, "metadata": metadata} if level == 0 else {"subfiletype": 1, "metadata": None}
            file.write(tiles(pair, side, level, tile), shape=shape, dtype=np.uint8, **said, **options)


def write_pair(folder: Path, pair: Pair, *, tile: int = TILE, count: int = 60) -> None:
    """Write both slides, the alignment and the landmarks of both."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("fixed", "moving"):
        write_slide(folder / f"{side}.ome.tif", pair, side, tile=tile)
    sitk.WriteTransform(pair.rigid, str(folder / "rigid.tfm"))
    random = np.random.default_rng(7)
    span = np.array([pair.width, pair.height]) * PIXEL
    fixed = (0.3 + 0.4 * random.random((count, 2))) * span
    moving = [pair.rigid.TransformPoint(point) for point in pair.unbend(fixed).tolist()]
    for name, points in (("fixed", fixed.tolist()), ("moving", moving)):
        lines = ["x,y", *(",".join(repr(float(v)) for v in point) for point in points)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_pair(Path(sys.argv[1]), Pair(int(sys.argv[2]), int(sys.argv[3])))
