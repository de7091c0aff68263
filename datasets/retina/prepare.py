"""prepare.py SOURCE TARGET CASE ...: one photograph of a retina seen twice, with its own light and noise each time.

The fixed image is the photograph averaged 2 by 2. The moving one is another exposure of the same eye, made from the
photograph: uneven light, another colour balance and contrast, and the noise of its own sensor. Two structures are
found by thresholds on the fixed image's green channel; they belong to both images, which lie on one grid.
"""

import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy import ndimage

#: Dark pixels around the photograph, so that the retina stays in the frame when it moves.
MARGIN = 12
#: Pixels that a vessel may be wide.
VESSEL_WIDTH = 13


def main(source: Path, target: Path, cases: list[str]) -> None:
    """Write ``fixed.png``, ``moving.png`` and the label maps of each case."""
    photograph = iio.imread(source / "retina.jpg")[:1410, :1410].astype(np.int64)
    halved = photograph.reshape(705, 2, 705, 2, 3).sum(axis=(1, 3))
    halved = np.pad(halved, [(MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)])
    fixed = ((halved + 2) // 4).astype(np.uint8)
    labels = structures(fixed)
    for case in cases:
        folder = target / case
        (folder / "truth").mkdir(parents=True)
        iio.imwrite(folder / "fixed.png", fixed)
        iio.imwrite(folder / "moving.png", exposure(halved / 4, seed=int(case.removeprefix("eye"))))
        for side in ("fixed", "moving"):
            iio.imwrite(folder / "truth" / f"{side}_labels.png", labels)


def exposure(image: np.ndarray, *, seed: int) -> np.ndarray:
    """Return the picture (y, x, 3; 0 to 255) taken again: light from one side, other colours, noise."""
    random = np.random.default_rng(seed)
    angle = random.integers(0, 8)
    across = np.array([1, 0.7, 0, -0.7, -1, -0.7, 0, 0.7])[[angle, (angle + 2) % 8]]
    y, x = np.meshgrid(*[np.linspace(-1, 1, n) for n in image.shape[:2]], indexing="ij")
    light = 1 + 0.03 * (across[0] * x + across[1] * y) - 0.03 * (x * x + y * y)
    gain = np.array([0.85, 1.15, 1.1]) + random.integers(-10, 11, size=3) / 200
    values = image * light[..., None] * gain
    # A softer contrast: a line between black and the middle, a flatter one above it.
    values = np.where(values < 128, values, 128 + 0.9 * (values - 128)) + 6
    noise = random.integers(-2, 3, size=(4, *image.shape)).sum(axis=0)
    return np.clip(np.rint(values + noise), 0, 255).astype(np.uint8)


def structures(image: np.ndarray) -> np.ndarray:
    """Return the label map (y, x): 1 the optic disc, 2 the larger vessels."""
    red, green = image[..., 0].astype(np.int64), image[..., 1].astype(np.int64)
    retina = ndimage.binary_opening(red > 60, iterations=3)
    inside = ndimage.binary_erosion(retina, iterations=10)
    smooth = ndimage.uniform_filter(green * 16, 3)
    dark = ndimage.grey_closing(smooth, size=VESSEL_WIDTH) - smooth
    vessels = large((dark > 13 * 16) & inside, least=150)
    bright = ndimage.uniform_filter(ndimage.grey_closing(green, size=VESSEL_WIDTH), 9) > 130
    disc = ndimage.binary_fill_holes(ndimage.binary_closing(largest(bright & inside), iterations=5))
    return np.where(vessels, 2, np.where(disc, 1, 0)).astype(np.uint8)


def large(mask: np.ndarray, *, least: int) -> np.ndarray:
    """Return the connected parts of at least so many pixels."""
    parts, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    return (sizes >= least)[parts]


def largest(mask: np.ndarray) -> np.ndarray:
    """Return the largest connected part."""
    parts, _ = ndimage.label(mask)
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    return parts == sizes.argmax()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
