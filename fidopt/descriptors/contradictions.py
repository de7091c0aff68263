"""Keys of a file that contradict each other, found even where other keys of the same file hold what they must not."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

G = TypeVar("G")
Check = Callable[[Any], Iterator[str]]


def check(function: Check) -> Check:
    """Mark a method of a descriptor that yields ``KEY: what is wrong`` where values contradict each other.

    The key is relative to the descriptor. Each method looks at as few values as it can: it is left out where one of
    them is unsound by itself, and what is wrong elsewhere in the file keeps none of the others from being said.
    """
    function.__dict__["is_check"] = True
    return function


def answers(method: Check | None, value: Any) -> list[str]:  # noqa: ANN401 - a descriptor or its stand-in
    """Return what a check finds, up to the first unsound value that it asks for."""
    found: list[str] = []
    # What was found before an unsound value was met holds all the same.
    with suppress(UnsoundError):
        for problem in method(value) if method is not None else ():
            found.append(problem)
    return found


def given(descriptor: Any, name: str, instead: G) -> G:  # noqa: ANN401 - a descriptor or its stand-in
    """Return a value of a descriptor, or another where it is unsound: for checks that look at many descriptors."""
    try:
        value: G = getattr(descriptor, name)
    except UnsoundError:
        return instead
    return value


def contradictions(value: Any, model: type[BaseModel], key: str = "") -> Iterator[str]:  # noqa: ANN401 - see below
    """Yield what the marked methods of a descriptor and of its parts find, as ``KEY: what is wrong``.

    Parameters
    ----------
    value
        The descriptor, or what :func:`partly` made of an unsound one.
    model
        Its kind.
    key
        Where it stands in the file, ending in a dot; empty for the whole file.
    """
    for method in _checks(model):
        yield from (f"{key}{problem}" for problem in answers(method, value))
    for name, alias in _parts(model).items():
        # The value of a table is the file itself: its names are keys, and "root" is none.
        inner = key.removesuffix(".") if name == "root" else f"{key}{alias}"
        for place, child, kind in _descriptors(given(value, name, None), inner):
            yield from contradictions(child, kind, f"{place}.")


@cache
def _checks(model: type[BaseModel]) -> tuple[Check, ...]:
    """Return the marked methods of a model, those of the classes that it is made from first."""
    methods = (method for part in reversed(model.__mro__) for method in vars(part).values())
    return tuple(method for method in methods if getattr(method, "is_check", False))


@cache
def _parts(model: type[BaseModel]) -> dict[str, str]:
    """Return field -> key of the values that may hold descriptors: of numbers and texts there is nothing to ask."""
    fields = model.model_fields.items()
    return {name: field.alias or name for name, field in fields if _holds_models(field.annotation)}


def _holds_models(annotation: Any) -> bool:  # noqa: ANN401 - a type as pydantic takes it
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_holds_models(inside) for inside in get_args(annotation))


def partly(model: type[BaseModel], document: dict[str, Any]) -> Any:  # noqa: ANN401 - stands in for a model
    """Return a stand-in for a descriptor some of whose values are unsound: asking for one of those is an UnsoundError.

    Parameters
    ----------
    model
        The kind of descriptor.
    document
        Its JSON object.
    """
    values: dict[str, Any] = {}
    if issubclass(model, RootModel):
        return _Partly(model, {"root": _sound(_annotation(model.model_fields["root"]), document)})
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in document:
            values[name] = _sound(_annotation(field), document[key])
        elif not field.is_required():
            values[name] = field.get_default(call_default_factory=True)
    return _Partly(model, values)


class UnsoundError(Exception):
    """A value that a check needs is not what it must be; that was said already."""


class _Unsound:
    """Stands where a value is unsound: whatever is asked of it is an :class:`UnsoundError`."""

    def _refuse(self, *_: object) -> Any:  # noqa: ANN401 - it returns nothing
        raise UnsoundError

    __getattr__ = __eq__ = __hash__ = __iter__ = __len__ = __bool__ = __contains__ = __getitem__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __str__ = _refuse


class _Partly:
    """A descriptor of which only the sound values can be had."""

    def __init__(self, model: type[BaseModel], values: dict[str, Any]) -> None:
        self.__dict__.update(_model=model, _values=values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any kind
        value = self._values.get(name, _UNSOUND) if name in self._model.model_fields else _UNSOUND
        if value is not _UNSOUND:
            return value
        if name in self._model.model_fields:
            raise UnsoundError
        found = getattr(self._model, name)
        return found.__get__(self) if hasattr(found, "__get__") else found


_UNSOUND = _Unsound()


def _descriptors(value: Any, key: str) -> Iterator[tuple[str, Any, type[BaseModel]]]:  # noqa: ANN401 - of any kind
    if isinstance(value, BaseModel):
        yield key, value, type(value)
    elif isinstance(value, _Partly):
        yield key, value, value._model
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _descriptors(item, f"{key}.{name}".removeprefix("."))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _descriptors(item, f"{key}.{number}")


def _annotation(field: FieldInfo) -> Any:  # noqa: ANN401 - a type as pydantic takes it
    return field.rebuild_annotation()


def _sound(annotation: Any, raw: Any) -> Any:  # noqa: ANN401 - a type and a JSON value
    try:
        return TypeAdapter(annotation).validate_json(json.dumps(raw), strict=True)
    except ValidationError:
        return _sound_parts(annotation, raw)


def _sound_parts(annotation: Any, raw: Any) -> Any:  # noqa: ANN401 - one answer a kind of type
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _sound_parts(inside[0], raw)
    if origin in {Union, types.UnionType}:
        members = [one for one in inside if one is not type(None)]
        return _sound_parts(members[0], raw) if len(members) == 1 else _UNSOUND
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and isinstance(raw, dict):
        return partly(annotation, raw)
    if origin is dict and isinstance(raw, dict):
        return {name: _sound(inside[1], item) for name, item in raw.items()}
    if origin is tuple and inside[-1] is Ellipsis and isinstance(raw, list):
        return tuple(item for item in (_sound(inside[0], one) for one in raw) if item is not _UNSOUND)
    return _UNSOUND
