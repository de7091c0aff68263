"""A field's file damaged at random, in every format a field may come in; the same damages for the same seed."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import numpy.typing as npt
import SimpleITK as sitk  # noqa: N813 - the name the field knows

import blocks
from blocks.grid import Grid
from fidopt.images.geometry import apply_grid_to_sitk
from fidopt.images.nifti import write_field

Vectors = npt.NDArray[Any]
Random = np.random.Generator
#: Format -> the name of a case's field in it.
FORMATS = {
    "nii": "DVF.nii",
    "nii.gz": "DVF.nii.gz",
    "mha": "DVF.mha",
    "mha, compressed": "DVF.mha",
    "nrrd": "DVF.nrrd",
    "nrrd, compressed": "DVF.nrrd",
    "npz": "disp_0001_0002.npz",
    "npz, compressed": "disp_0001_0002.npz",
    "ome.zarr": "DVF.ome.zarr",
}
#: Those whose voxels have a checksum.
CHECKED = ("nii.gz", "mha, compressed", "nrrd, compressed", "npz", "npz, compressed", "ome.zarr")
#: Fields of a NIfTI header that say what the voxels are or where they lie, and how each is set.
NIFTI_KEYS = (
    "sizeof_hdr", "dim", "intent_code", "datatype", "bitpix", "pixdim", "vox_offset", "magic", "qform_code",
    "sform_code", "quatern_b", "qoffset_x", "srow_x", "srow_y", "srow_z", "scl_slope", "scl_inter",
)  # fmt: skip


@dataclass(frozen=True)
class Sound:
    """A field as it is: u (ndim, z, y, x) on its grid, in the world."""

    vectors: Vectors
    grid: Grid

    def write(self, path: Path, kind: str) -> Path:
        """Write it in a format of :data:`FORMATS`, and return the file or store."""
        shutil.rmtree(path, ignore_errors=True)
        if kind.startswith("npz"):
            whole = len(self.vectors) == self.grid.ndim
            matrix = self.grid.inverse_matrix if whole else np.eye(len(self.vectors))
            with np.errstate(invalid="ignore"):
                steps = np.tensordot(matrix, self.vectors.astype(np.float64), axes=1)
            array = np.asarray(steps.transpose(0, *range(self.grid.ndim, 0, -1)), dtype=self.vectors.dtype)
            (np.savez_compressed if "compressed" in kind else np.savez)(path, array)
        elif kind == "ome.zarr":
            image = blocks.image_of(self.vectors, self.grid, unit="mm")
            blocks.write_image(path, image, levels=False, overwrite=True)
        elif kind.startswith("nii") and self.vectors.dtype == np.float32:
            write_field(path, self.vectors, self.grid)
        else:
            image = sitk.GetImageFromArray(np.moveaxis(self.vectors, 0, -1), isVector=True)
            apply_grid_to_sitk(image, self.grid)
            sitk.WriteImage(image, str(path), useCompression="compressed" in kind)
        return path


#: What a damage does: given a sound field, a format, where to write it and random numbers.
Damage = Callable[[Sound, str, Path, Random], None]


def _cut(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """The last part of a file is gone, of a store's one of its files."""
    sound.write(path, kind)
    file = _file_of(path, random)
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * random.random())])


def _flip(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """A few bits are others, where a checksum covers them: in the voxels, of a store in the index of its shard."""
    sound.write(path, kind)
    if kind == "ome.zarr":
        file = path / "0" / "c" / "0" / "0" / "0" / "0"
        # One chunk: the index is its place and length, and a checksum.
        where = random.integers(file.stat().st_size - 20, file.stat().st_size)
    else:
        file = path
        size = file.stat().st_size
        where = random.integers(size // 2, size * 9 // 10)
    content = bytearray(file.read_bytes())
    content[where] ^= 1 << random.integers(8)
    file.write_bytes(content)


def _header(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """A number or a word of the header is another."""
    sound.write(path, kind)
    if kind.startswith("nii"):
        _nifti_header(path, random)
    elif kind == "ome.zarr":
        _store_header(path, random)
    else:
        _text_header(path, random)


def _nifti_header(path: Path, random: Random) -> None:
    packed = path.suffix == ".gz"
    content = path.read_bytes()
    content = zlib.decompress(content, 31) if packed else content
    header = nibabel.Nifti1Header(content[:348], check=False)
    key = str(random.choice(NIFTI_KEYS))
    value = header[key]
    raw = bytearray(np.asarray(value).tobytes())
    raw[random.integers(len(raw))] ^= 1 << random.integers(8)
    header[key] = np.frombuffer(bytes(raw), dtype=np.asarray(value).dtype).reshape(np.asarray(value).shape)
    made = header.binaryblock + content[348:]
    path.write_bytes(_gzip(made) if packed else made)


def _gzip(content: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(content) + packer.flush()


def _text_header(path: Path, random: Random) -> None:
    """Change a line of a MetaImage's or NRRD's header."""
    content = path.read_bytes()
    end = content.index(b"LOCAL\n") + 6 if path.suffix == ".mha" else content.index(b"\n\n") + 2
    lines = content[:end].decode().split("\n")
    place = int(random.choice([k for k, line in enumerate(lines) if line]))
    words = lines[place].split(" ")
    word = int(random.integers(len(words)))
    words[word] = str(random.choice([_other(words[word], random), "", "0", "-1", "nan", "x"]))
    lines[place] = " ".join(words)
    if random.random() < 0.2:
        del lines[place]
    path.write_bytes("\n".join(lines).encode() + content[end:])


def _store_header(path: Path, random: Random) -> None:
    """Change a value of a store's metadata, wherever it stands."""
    file = path / str(random.choice(["zarr.json", "0/zarr.json"]))
    document = json.loads(file.read_text())
    places = list(_places(document))
    holder, key = places[random.integers(len(places))]
    value = holder[key]
    holder[key] = _other(value, random) if isinstance(value, str) else random.choice([0, -1, 2, 7, 1.5])
    if not isinstance(holder[key], str):
        holder[key] = float(holder[key]) if isinstance(value, float) else int(holder[key])
    file.write_text(json.dumps(document))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from _places(inner)
        else:
            yield value, key


def _other(word: str, random: Random) -> str:
    """Return a word with one of its letters changed, a digit by a digit."""
    if not word:
        return "1"
    place = int(random.integers(len(word)))
    new = random.choice(list("0123456789" if word[place].isdigit() else "abcxyz_"))
    return word[:place] + str(new) + word[place + 1 :]


def _not_finite(sound: Sound, kind: str, path: Path, random: Random) -> None:
    vectors = sound.vectors.copy()
    wrong = random.choice([np.nan, np.inf, -np.inf])
    vectors.flat[random.integers(vectors.size, size=random.integers(1, 5))] = wrong
    replace(sound, vectors=vectors).write(path, kind)


def _intent(sound: Sound, kind: str, path: Path, random: Random) -> None:
    sound.write(path, kind)
    image = nibabel.load(path)
    header = image.header.copy()
    header["intent_code"] = random.choice([0, 1001, 1005, 1006, 1008, 1011, 2003])
    nibabel.save(nibabel.Nifti1Image(np.asarray(image.dataobj).copy(), None, header), path)


def _shape(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """Axes in another order, one voxel too few or too many, or a component that is missing."""
    grid, vectors = sound.grid, sound.vectors
    which = random.integers(4)
    if which == 0:
        vectors = vectors.transpose(0, 3, 2, 1)
    elif which == 1:
        vectors = vectors[:, 1:]
    elif which == 2:
        vectors = np.concatenate([vectors, vectors[..., -1:]], axis=-1)
    else:
        vectors = vectors[:2] if not kind.startswith("nii") else vectors[:, :, 1:]
    made = Grid(vectors.shape[1:], grid.spacing, grid.origin, grid.direction)
    replace(sound, vectors=np.ascontiguousarray(vectors), grid=made).write(path, kind)


def _grid(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """Another origin, or axes turned or mirrored."""
    grid = sound.grid
    moved = tuple(v + random.choice([-1, 1]) * random.uniform(1e-3, 5) for v in grid.origin)
    matrix = grid.direction_matrix[:, random.permutation(3)] * random.choice([-1, 1], 3)
    turned = tuple(matrix.ravel())
    if turned == grid.direction or random.random() < 0.5:
        made = Grid(grid.shape, grid.spacing, moved, grid.direction)
    else:
        made = Grid(grid.shape, grid.spacing, grid.origin, turned)
    replace(sound, grid=made).write(path, kind)


def _spacing(sound: Sound, kind: str, path: Path, random: Random) -> None:
    grid = sound.grid
    spacing = tuple(s * random.choice([0.1, 0.9, 1.001, 2, 10]) for s in grid.spacing)
    replace(sound, grid=Grid(grid.shape, spacing, grid.origin, grid.direction)).write(path, kind)


def _type(sound: Sound, kind: str, path: Path, random: Random) -> None:
    """Another type of number: wider ones hold the same displacements, whole ones do not."""
    name = random.choice(["float64", "int16", "int32", "uint8"])
    replace(sound, vectors=sound.vectors.astype(name)).write(path, kind)


_EVERY = tuple(FORMATS)
#: Damages by name, and the formats that each is done to. An array in .npz says nothing of where it lies.
DAMAGES: dict[str, tuple[Damage, tuple[str, ...]]] = {
    "cut": (_cut, _EVERY),
    "bits": (_flip, CHECKED),
    "header": (_header, tuple(kind for kind in FORMATS if not kind.startswith("npz"))),
    "not finite": (_not_finite, _EVERY),
    "intent": (_intent, ("nii", "nii.gz")),
    "shape": (_shape, _EVERY),
    "grid": (_grid, tuple(kind for kind in FORMATS if not kind.startswith("npz"))),
    "spacing": (_spacing, tuple(kind for kind in FORMATS if not kind.startswith("npz"))),
    "type": (_type, _EVERY),
}


def _file_of(path: Path, random: Random) -> Path:
    if path.is_file():
        return path
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return files[random.integers(len(files))]


def damaged(sound: Sound, folder: Path, *, count: int, seed: int) -> Iterator[tuple[str, Path]]:
    """Yield so many damaged files, a file at a time, with what was done: every damage and format in turn."""
    random = np.random.default_rng(seed)
    ways = [(name, kind) for name, (_, kinds) in DAMAGES.items() for kind in kinds]
    for number in range(count):
        name, kind = ways[number % len(ways)]
        path = folder / FORMATS[kind]
        if path.is_file():
            path.unlink()
        DAMAGES[name][0](sound, kind, path, random)
        yield f"{number}: {name}, {kind}", path
