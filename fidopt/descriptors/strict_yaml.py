"""YAML files as descriptors: the values of JSON and no others, a key given twice is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml

from fidopt.descriptors.base import Descriptor, parse, shown, text_of
from fidopt.errors import DescriptorError

D = TypeVar("D", bound=Descriptor)


def read_yaml(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Read a YAML file of one mapping, and say which keys it gives twice.

    Parameters
    ----------
    path
        The file. Only the scalars of JSON are known: ``no`` and ``01:30:00`` are texts here, not a truth value and a
        number in base 60. Anchors, aliases and tags are refused.

    Returns
    -------
    tuple
        The mapping, and a sentence for every key that is given twice.

    Raises
    ------
    DescriptorError
        When it cannot be read, or is not YAML of one mapping.
    """
    where = shown(path)
    loader = _Loader(text_of(path))
    try:
        document = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DescriptorError([f"{where}: is not YAML as it is read here: {' '.join(str(error).split())}"]) from error
    finally:
        loader.dispose()
    if not isinstance(document, dict):
        got = "nothing" if document is None else type(document).__name__
        raise DescriptorError([f"{where}: must be a mapping of keys to values, got {got}"])
    return document, [f"{where}: {problem}" for problem in loader.twice]


def parse_yaml(model: type[D], document: dict[str, Any], twice: list[str], *, where: str) -> D:
    """Read a mapping of :func:`read_yaml` as a descriptor; raises a DescriptorError with every problem of the file."""
    try:
        read = parse(model, json.dumps(document), where=where)
    except DescriptorError as error:
        raise DescriptorError([*twice, *error.problems]) from error
    if twice:
        raise DescriptorError(twice)
    return read


class _Loader(yaml.SafeLoader):
    """The safe loader without what YAML has beyond JSON."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own class attribute

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - PyYAML's nodes are not typed
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            msg = f"line {event.start_mark.line + 1} has an anchor, an alias or a tag; write the value itself"
            raise yaml.YAMLError(msg)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                msg = f"line {key.start_mark.line + 1} has a key that is not a text"
                raise yaml.YAMLError(msg)
            if key.value in seen:
                self.twice.append(f"{key.value}: is given twice, again on line {key.start_mark.line + 1}; keep one")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _resolve(kind: str, regex: str, *first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(regex), list(first))


_resolve("bool", r"^(?:true|false)$", *"tf")
_resolve("int", r"^-?(?:0|[1-9][0-9]*)$", *"-0123456789")
_resolve("float", r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", *"-0123456789")
_resolve("null", r"^(?:null|~|)$", "n", "~", "")
