"""Write the zero displacement field on the grid of a NIfTI image, with Python's own library alone."""

import gzip
import struct
import sys
from pathlib import Path

HEADER_BYTES = 348
VECTOR_INTENT = 1007
FLOAT32 = (16, 32)


def field_header(image: bytes, *, dimension: int) -> tuple[bytes, int]:
    """Return the header of a vector field on an image's grid, and the number of its voxels.

    Parameters
    ----------
    image
        The first 348 bytes of a NIfTI-1 file; the fields that place the grid in the world are kept as they are.
    dimension
        Components a voxel, and spatial axes: 2 or 3.
    """
    order = "<" if struct.unpack_from("<i", image)[0] == HEADER_BYTES else ">"
    if struct.unpack_from(f"{order}i", image)[0] != HEADER_BYTES:
        sys.exit("the fixed image is not a NIfTI-1 file")
    header = bytearray(image)
    sizes = list(struct.unpack_from(f"{order}8h", image, 40))[1 : dimension + 1]
    sizes += [1] * (3 - dimension)
    struct.pack_into(f"{order}8h", header, 40, 5, *sizes, 1, dimension, 1, 1)
    struct.pack_into(f"{order}3f", header, 56, 0.0, 0.0, 0.0)
    struct.pack_into(f"{order}h", header, 68, VECTOR_INTENT)
    struct.pack_into(f"{order}2h", header, 70, *FLOAT32)
    struct.pack_into(f"{order}3f", header, 108, 352.0, 1.0, 0.0)
    struct.pack_into("16s", header, 328, b"")
    struct.pack_into("4s", header, 344, b"n+1\0")
    voxels = sizes[0] * sizes[1] * sizes[2]
    return bytes(header), voxels


def main(fixed: str, out: str, dimension: int) -> None:
    """Write the zero field of ``fixed`` to ``out``."""
    opener = gzip.open if fixed.endswith(".gz") else open
    with opener(fixed, "rb") as stream:
        header, voxels = field_header(stream.read(HEADER_BYTES), dimension=dimension)
    left = 4 * voxels * dimension
    block = bytes(1 << 20)
    with Path(out).open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as stream:
        stream.write(header + bytes(4))
        while left > 0:
            stream.write(block[: min(left, len(block))])
            left -= len(block)


if __name__ == "__main__":
    import os

    main(sys.argv[1], sys.argv[2], int(os.environ["FIDOPT_DIMENSION"]))
