"""``fidopt info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fidopt.commands.options import Json
from fidopt.commands.output import say, show, show_json
from fidopt.commands.pictures import refuse_picture

if TYPE_CHECKING:
    from blocks.image import Level


def info(store: str, /, *, preview: Path | None = None, json: Json = False) -> int:
    """Say what a store holds: shape, type, geometry, unit, levels, chunks, shards and bytes.

    It is a folder, or a URL: `s3://` or `http(s)://`. Only its metadata are read, and which shard files are there of a
    store that fidopt wrote. With `--preview`, a coarse level is drawn: the plane of a 2D image, the three middle planes
    of a 3D one.

    Example: `fidopt info fixed.ome.zarr --preview fixed.png`

    Parameters
    ----------
    store
        an OME-Zarr store
    preview
        a PNG file to draw it into, in a folder that is there
    """
    from blocks.image import kind_of, levels_of, open_image, unit_of
    from fidopt.images.readers import refusing

    if preview is not None:
        refuse_picture(preview, option="--preview")
    with refusing(store):
        image, levels = open_image(store), levels_of(store)
        grid = levels[0].grid
        facts: dict[str, Any] = {
            "path": store,
            "dims": [str(dim) for dim in image.dims],
            "shape": list(image.shape),
            "dtype": str(image.dtype),
            "kind": kind_of(image),
            "unit": unit_of(image),
            "spacing": list(grid.spacing),
            "origin": list(grid.origin),
            "direction": list(grid.direction),
            "levels": [_level(store, level) for level in levels],
            "missing_shards": _missing(store, levels),
        }
        if preview is not None:
            _draw(store, preview)
    if json:
        show_json(facts)
    else:
        _print(facts)
    return 0


def _level(store: str, level: Level) -> dict[str, Any]:
    from blocks.storage.objects import listing

    folder = Path(store.removeprefix("file://")) / level.path
    held: int | None = None
    if store.startswith("s3://"):
        held = sum(listing(f"{store.rstrip('/')}/{level.path}").values())
    elif folder.is_dir():
        held = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "path": level.path,
        "shape": list(level.shape),
        "chunks": list(level.chunks),
        "shards": None if level.shards is None else list(level.shards),
        "spacing": list(level.grid.spacing),
        "bytes": held,
    }


def _missing(store: str, levels: list[Level]) -> int | None:
    from blocks.storage import is_url
    from fidopt.images.lost import lost_shards

    # A server would be asked about every shard: this command reads metadata alone.
    lost = None if is_url(store) else lost_shards(store, levels)
    return None if lost is None else len(lost)


def _draw(store: str, preview: Path) -> None:
    from blocks.image import open_image
    from fidopt.images.preview import coarse_level, render, write_png

    write_png(preview, render(open_image(store, level=coarse_level(store))))
    say(f"drawn in {preview}")


def _print(facts: dict[str, Any]) -> None:
    from rich.table import Table

    lines = Table.grid(padding=(0, 2))
    lines.add_row("shape", f"{_by(facts['shape'])} ({', '.join(facts['dims'])})")
    lines.add_row("type", f"{facts['dtype']}, {facts['kind']}")
    for key in ("spacing", "origin"):
        lines.add_row(key, f"{', '.join(f'{v:.10g}' for v in facts[key])} {facts['unit']} (x first)")
    lines.add_row("direction", ", ".join(f"{v:.10g}" for v in facts["direction"]))
    if lost := facts["missing_shards"]:
        gone = "1 shard file is" if lost == 1 else f"{lost} shard files are"
        lines.add_row("missing", f"{gone} not there, and read as zeros: write the store again")
    show(facts["path"])
    show(lines)
    # Shapes stay whole in a narrow terminal; the numbers of a spacing go below one another.
    table = Table()
    for head in ("level", "shape", "chunks", "shards", f"spacing ({facts['unit']}, x first)", "bytes"):
        table.add_column(head, no_wrap=not head.startswith("spacing"))
    for number, level in enumerate(facts["levels"]):
        shards = "none" if level["shards"] is None else _by(level["shards"], "x")
        size = "unknown" if level["bytes"] is None else f"{level['bytes']:,}"
        spacing = ", ".join(f"{v:.6g}" for v in level["spacing"])
        table.add_row(str(number), _by(level["shape"], "x"), _by(level["chunks"], "x"), shards, spacing, size)
    show(table)


def _by(shape: list[int], sign: str = " x ") -> str:
    return sign.join(str(n) for n in shape)
