"""A model's JSON Schema with the words of its docstring, so that an editor explains the keys of a descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel


def explained(schema: dict[str, Any], model: type[BaseModel], *, null_is_empty: Sequence[str] = ()) -> None:
    """Put what a model's docstring says of its parameters beside the keys of its schema.

    Parameters
    ----------
    schema
        What Pydantic made of the model; changed in place.
    model
        The model, with a numpydoc docstring.
    null_is_empty
        Its keys that may be null, which stands for nothing.
    """
    schema.pop("title", None)
    about, _, parameters = (model.__doc__ or "").partition("\n\n    Parameters\n")
    schema["description"] = " ".join(about.replace("``", "").split())
    said = dict(_parameters(parameters))
    properties: dict[str, Any] = schema.get("properties", {})
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key not in properties:
            continue
        if name in null_is_empty:
            properties[key] = _nullable(properties[key])
        properties[key].pop("title", None)
        if name in said:
            properties[key]["description"] = said[name]


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """Yield each parameter of a numpydoc section with its words; several on one line share theirs."""
    names: list[str] = []
    words: list[str] = []
    for line in [*text.splitlines(), "    end"]:
        if line.strip() and not line.startswith(" " * 8):
            yield from ((name, " ".join(words).replace("``", "")) for name in names if words)
            names, words = [name.strip() for name in line.split(",")], []
        else:
            words += line.split()


def _nullable(entry: dict[str, Any]) -> dict[str, Any]:
    beside = {name: entry[name] for name in ("default",) if name in entry}
    alone = {name: value for name, value in entry.items() if name not in {"default", "title"}}
    return {"anyOf": [alone, {"type": "null"}], **beside}
