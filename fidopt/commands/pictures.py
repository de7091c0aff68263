"""What is checked of the file that a picture is to go to, before anything is read."""

from __future__ import annotations

from pathlib import Path

from fidopt.errors import UsageError


def refuse_picture(path: Path, *, option: str) -> None:
    """Refuse a file that cannot become a PNG picture.

    Raises
    ------
    UsageError
        When it has another ending, its folder is not there, or it is a folder or lies inside a store.
    """
    from fidopt.images.atomic import refuse_inside_store

    if path.suffix.lower() != ".png":
        msg = f"{option} writes a PNG file, NAME.png, got {str(path)!r}"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"{option} {path}: there is no folder {path.parent}; make it first, or name another"
        raise UsageError(msg)
    if path.is_dir():
        msg = f"{option} {path} is a folder; name a file"
        raise UsageError(msg)
    refuse_inside_store(path)
