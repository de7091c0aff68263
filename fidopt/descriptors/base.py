"""What every JSON descriptor shares: strict models, and all of a file's problems reported at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from fidopt.descriptors.contradictions import Check, answers, check, contradictions, partly
from fidopt.descriptors.explaining import explained
from fidopt.descriptors.wording import pattern, sentence
from fidopt.errors import DescriptorError

#: A name that is also a folder's: no separator, no leading dot, nothing a shell would read.
Name = Annotated[
    str,
    pattern(
        r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit",
    ),
]
#: A text that says something.
Text = Annotated[
    str,
    StringConstraints(min_length=1, strip_whitespace=True),
    WithJsonSchema({"type": "string", "pattern": r"\S"}),
]
#: The sha256 of a file or of a store.
Digest = Annotated[str, pattern(r"^sha256:[0-9a-f]{64}$", "'sha256:' and 64 hexadecimal digits")]


def _whole(value: object) -> object:
    """Refuse 3.0 where 3 is meant, and true where 1 is: a literal takes whatever equals it, even in a strict model."""
    if isinstance(value, float | bool):
        msg = "must be a whole number"
        raise ValueError(msg)
    return value


def _day(value: str) -> str:
    try:
        read = date.fromisoformat(value)
    except ValueError:
        read = None
    if read is None or read.isoformat() != value:
        msg = "must be a day like 2026-11-30"
        raise ValueError(msg)
    return value


#: A day, as YYYY-MM-DD.
Day = Annotated[
    str,
    AfterValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}),
]

#: Of a literal of numbers: they are whole.
WHOLE = BeforeValidator(_whole)
#: How many axes images have.
Dimension = Annotated[Literal[2, 3], WHOLE]


def _explain(schema: dict[str, Any], model: type[Descriptor]) -> None:
    explained(schema, model, null_is_empty=model.null_is_empty)
    rules = model.schema_rules()
    if rules:
        schema["allOf"] = rules


class Descriptor(BaseModel):
    """A JSON file, or a part of one: no unknown key, no value of another type, no change after reading.

    ``$schema`` may name the JSON Schema an editor uses; it is read and left out when a descriptor is written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, json_schema_extra=_explain)

    #: Keys of a whole file whose null stands for nothing: for no key, an empty list or an empty object.
    null_is_empty: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def schema_rules(cls) -> list[dict[str, Any]]:
        """Return what the JSON Schema says of keys that depend on each other, as parts of an ``allOf``."""
        return []


class File(Descriptor):
    """A whole JSON file, which may begin with ``$schema``."""

    schema_url: str | None = Field(default=None, alias="$schema", exclude=True)


T = TypeVar("T")


def _explain_table(schema: dict[str, Any], model: type[Table[Any]]) -> None:
    explained(schema, model)
    (entry,) = schema["patternProperties"].values()
    schema["patternProperties"] = {r"^(?!\$schema$)(?=.*\S)": entry}
    schema["properties"] = {"$schema": {"type": ["string", "null"]}}


class Table(RootModel[dict[Text, T]]):
    """A whole JSON file that is one object of name -> entry; ``$schema`` may stand first, and is no name."""

    model_config = ConfigDict(frozen=True, strict=True, json_schema_extra=_explain_table)

    null_is_empty: ClassVar[tuple[str, ...]] = ("$schema",)

    @check
    def _schema_is_no_entry(self) -> Iterator[str]:
        if "$schema" in self.root:
            yield "$schema: must be a text, the JSON Schema that an editor uses"


D = TypeVar("D", bound=Descriptor | Table[Any])


def load(model: type[D], path: Path, *, also: Check | None = None) -> D:
    """Read a JSON file as a descriptor.

    Parameters
    ----------
    model
        The kind of descriptor.
    path
        The JSON file. Comments, a key given twice, NaN and infinities are refused, as JSON has none of them.
    also
        Given the descriptor, or a stand-in that has the sound ones of its values, yields what is wrong with it beside
        what its own values show, as ``KEY: what is wrong``.

    Raises
    ------
    DescriptorError
        With every problem of the file, each as ``FILE: KEY: must be ..., got ...``.
    """
    return parse(model, text_of(path), where=shown(path), also=also)


def text_of(path: Path) -> str:
    """Return the text of a descriptor's file.

    Raises
    ------
    DescriptorError
        When there is none, it is a folder, or it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        why = f"cannot be read as UTF-8 text: {error}"
        raise DescriptorError([f"{shown(path)}: {why}"]) from error
    except FileNotFoundError as error:
        raise DescriptorError([f"{shown(path)}: there is no such file"]) from error
    except OSError as error:
        why = "is a folder, where a file is expected" if path.is_dir() else f"cannot be read: {error.strerror}"
        raise DescriptorError([f"{shown(path)}: {why}"]) from error


def parse(model: type[D], text: str, *, where: str, also: Check | None = None) -> D:
    """Read a JSON text as a descriptor; ``where`` names it in messages. Raises as :func:`load`."""
    twice: list[str] = []
    try:
        document = _json(text, twice)
    except (json.JSONDecodeError, RecursionError, _NotJsonError) as error:
        raise DescriptorError([f"{where}: is not JSON: {error}"]) from error
    try:
        read = cast("D", model.model_validate_json(_read_as(model, document, text)))
        found = [*twice, *contradictions(read, model), *answers(also, read)]
    except ValidationError as error:
        found = [*twice, *(sentence(model, e) for e in error.errors(include_url=False))]
        if isinstance(document, dict):
            sound = partly(model, document)
            found += [*contradictions(sound, model), *answers(also, sound)]
    if found:
        raise DescriptorError([f"{where}: {problem}" for problem in dict.fromkeys(found)])
    return read


def _read_as(model: type[D], document: Any, text: str) -> str:  # noqa: ANN401 - any JSON value
    """Return a text without what stands for nothing: a key whose null is empty, an editor's ``$schema`` in a table."""
    if not isinstance(document, dict):
        return text
    nothing = [key for key in model.null_is_empty if key in document and document[key] is None]
    if issubclass(model, Table) and isinstance(document.get("$schema"), str):
        nothing.append("$schema")
    for key in nothing:
        del document[key]
    return json.dumps(document) if nothing else text


def dump(descriptor: Descriptor | Table[Any]) -> str:
    """Return a descriptor as the JSON text fidopt writes: two spaces of indent, keys in the model's order."""
    document = descriptor.model_dump(mode="json", by_alias=True)
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def shown(path: Path) -> str:
    """Return a path as messages name it: relative to the working folder where it lies inside, else as it is."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


class _NotJsonError(ValueError):
    """A value that Python's reader takes and JSON does not have."""


def _json(text: str, twice: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Read a JSON text, and note the keys that an object gives twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                twice.append(f"{key}: is given twice in one object; keep one")
            seen[key] = value
        return seen

    def constant(name: str) -> None:
        msg = f"{name} is not a JSON number"
        raise _NotJsonError(msg)

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
