"""Some keys of a JSON file given other values, the rest of its text kept as its writer left it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Span:
    """Where a value stands in the text, and what it is."""

    start: int
    end: int
    value: Any


def edited(text: str, values: Mapping[str, Any], *, order: Sequence[str]) -> str:
    """Return the text of a JSON object with other values of some of its keys.

    Parameters
    ----------
    text
        A JSON object. Its indent, its line ends and the lists that it keeps on one line are taken up; a value that
        stays the same keeps its text.
    values
        Key -> its new JSON value; a key that the object lacks is put in.
    order
        The keys in the order that files have them: a new key goes behind the last that stands before it there.
    """
    for key, value in values.items():
        spans = _spans(text)
        if key not in spans:
            text = _with_key(text, spans, key, value, before=list(order[: order.index(key)]))
        elif json.dumps(spans[key].value) != json.dumps(value):
            span = spans[key]
            text = text[: span.start] + _written(text, value, like=span) + text[span.end :]
    return text


def _spans(text: str) -> dict[str, _Span]:
    decoder, blank = json.JSONDecoder(), re.compile(r"[ \t\r\n,:]*")
    found: dict[str, _Span] = {}
    at = _past(blank, text, text.index("{") + 1)
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        start = _past(blank, text, at)
        value, at = decoder.raw_decode(text, start)
        found[key] = _Span(start, at, value)
        at = _past(blank, text, at)
    return found


def _past(blank: re.Pattern[str], text: str, at: int) -> int:
    match = blank.match(text, at)
    return match.end() if match else at


def _indent(text: str) -> str | None:
    """Return what a key of the object stands behind on its line; None where the object is on one line."""
    match = re.match(r"\s*\{[ \t]*\r?\n([ \t]*)\"", text)
    return match[1] if match else None


def _written(text: str, value: Any, *, like: _Span | None = None) -> str:  # noqa: ANN401 - any JSON value
    indent = _indent(text)
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    hands = [_inline(text, span, indent) for span in ([like] if like else []) + list(_spans(text).values())]
    inline = next((hand for hand in hands if hand is not None), False)
    return _lined(value, indent, inline=inline).replace("\n", _line_end(text))


def _inline(text: str, span: _Span, indent: str) -> bool | None:
    """Return whether a value keeps its lists of texts and numbers on one line; None where it shows neither."""
    stands = text[span.start : span.end].replace("\r\n", "\n")
    same = [one for one in (True, False) if _lined(span.value, indent, inline=one) == stands]
    return same[0] if len(same) == 1 else None


def _lined(value: Any, indent: str, *, inline: bool, depth: int = 1) -> str:  # noqa: ANN401 - any JSON value
    """Return a value on lines of its own, or, where asked, with its lists of texts and numbers on one line each."""
    plain = not any(isinstance(item, dict | list) for item in value) if isinstance(value, list) else False
    if not isinstance(value, dict | list) or not value or (inline and plain):
        return json.dumps(value, ensure_ascii=False)
    inner = [_lined(item, indent, inline=inline, depth=depth + 1) for item in _items(value)]
    if isinstance(value, dict):
        inner = [f"{json.dumps(key, ensure_ascii=False)}: {said}" for key, said in zip(value, inner, strict=True)]
    lines = ",\n".join(indent * (depth + 1) + said for said in inner)
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{lines}\n{indent * depth}{closed}"


def _items(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _with_key(text: str, spans: Mapping[str, _Span], key: str, value: Any, *, before: list[str]) -> str:  # noqa: ANN401 - any JSON value
    indent = _indent(text)
    gap = " " if indent is None else _line_end(text) + indent
    said = f"{json.dumps(key)}: {_written(text, value)}"
    behind = next((spans[one] for one in reversed(before) if one in spans), None)
    if behind is not None:
        return f"{text[: behind.end]},{gap}{said}{text[behind.end :]}"
    start = text.index("{") + 1
    return f"{text[:start]}{gap}{said}{',' if spans else ''}{text[start:]}"
