"""What Pydantic finds wrong with a value, as one sentence that says what was expected and what was got."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, StringConstraints
from pydantic_core import ErrorDetails

#: Patterns of texts -> what they ask for, in words for messages.
_PATTERNS: dict[str, str] = {}


def pattern(regex: str, words: str) -> StringConstraints:
    """Return the constraint that a text matches a pattern, and note how messages put it: "must be WORDS"."""
    _PATTERNS[regex] = words
    return StringConstraints(pattern=regex)


#: Pydantic's error types in fidopt's words; the others keep Pydantic's own.
_WORDS = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "finite_number": "must be a finite number",
}


def sentence(model: type[BaseModel], error: ErrorDetails) -> str:
    """Return ``KEY: must be ..., got ...`` for an error of a model; an unknown key is answered with the nearest."""
    # Pydantic puts the member of a union and the side of a mapping in the location; neither is a key of the file.
    parts = [
        str(p) for p in error["loc"] if p != "[key]" and not re.match(r"^[a-z]+\[.*\]$|^(?:str|int|float)$", str(p))
    ]
    kind, context = error["type"], error.get("ctx", {})
    key = ".".join(parts) or "the file"
    if kind == "missing":
        return f"{key}: is missing"
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(parts[-1], sorted(_keys(model)), n=1)
        return f"{key}: unknown key" + (f"; did you mean {close[0]!r}?" if close else "; remove it")
    return f"{key}: {_expected(kind, error['msg'], context)}, got {_brief(error['input'])}"


def _expected(kind: str, message: str, context: Mapping[str, Any]) -> str:
    match kind:
        case "greater_than" if context["gt"] == 0:
            words = "must be positive"
        case "string_pattern_mismatch":
            words = "must be " + _PATTERNS.get(context["pattern"], f"a text like {context['pattern']}")
        case "literal_error":
            words = f"must be {context['expected']}"
        case "greater_than_equal" if context["ge"] == 0:
            words = "must not be negative"
        case "string_too_short" | "too_short":
            words = "must not be empty"
        case "value_error":
            words = str(context.get("error", message))
        case _:
            words = _WORDS.get(kind) or message.replace("Input should", "must")
    return words


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def _keys(model: type[BaseModel]) -> set[str]:
    """Return every key that a model and the models inside it know."""
    found: set[str] = set()
    todo: list[Any] = [model.model_json_schema(by_alias=True)]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            found |= set(item.get("properties", {}))
            todo += item.values()
        elif isinstance(item, Sequence) and not isinstance(item, str):
            todo += item
    return found
