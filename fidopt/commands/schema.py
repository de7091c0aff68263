"""``fidopt schema``."""

from __future__ import annotations

from fidopt.commands.options import Json
from fidopt.commands.output import show, show_json


def schema(kind: str | None = None, /, *, json: Json = False) -> int:
    """Print the JSON Schema (draft 2020-12) of a kind of descriptor; without a kind, say which there are.

    An editor that is given it completes the keys of a file, explains them and underlines what is wrong: name it in the
    file's own `"$schema"`, or in the editor's settings.

    Example: `fidopt schema dataset > dataset.schema.json`

    Parameters
    ----------
    kind
        dataset, method, tracks and so on
    """
    from fidopt.descriptors.schemas import KINDS, schema

    if kind is not None:
        show_json(schema(kind))
    elif json:
        show_json({"kinds": {name: files for name, (files, _) in KINDS.items()}})
    else:
        _list({name: files for name, (files, _) in KINDS.items()})
    return 0


def _list(kinds: dict[str, str]) -> None:
    from rich.table import Table

    lines = Table.grid(padding=(0, 2))
    for name, files in kinds.items():
        lines.add_row(name, files)
    show(lines)
