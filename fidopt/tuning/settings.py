"""The settings that are compared: a grid's combinations, named ones, or the variants that a method has already."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fidopt.descriptors.strict_yaml import parse_yaml, read_yaml
from fidopt.descriptors.tuning import DEFAULTS, SettingsFile
from fidopt.errors import UsageError
from fidopt.runner.methods import Chosen

#: A grid of more combinations is refused: the best of so many says little about any other case.
MOST = 256
#: The variable by which a method is handed its settings.
VARIABLE = "FIDOPT_SETTINGS"


@dataclass(frozen=True)
class Setting:
    """Settings under a name.

    Parameters
    ----------
    name
        As tables have it.
    values
        What FIDOPT_SETTINGS holds.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A digest of the values, whatever the order of their keys: the name of a row's file."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()[:16]


def settings_of(chosen: Chosen, path: Path | None) -> tuple[Setting, ...]:
    """Return the settings to compare, the method's own first.

    Parameters
    ----------
    chosen
        The method; of a variant, its settings are what the others change.
    path
        The file of ``--settings``; None compares the variants of method.json.

    Raises
    ------
    UsageError
        When there is nothing to compare, too much, or the method reads no settings.
    DescriptorError
        With every problem of the file.
    """
    _refuse_deaf(chosen)
    own = chosen.method.variants[chosen.variant].settings if chosen.variant is not None else {}
    base = Setting(DEFAULTS, dict(own))
    if path is None:
        named = {name: variant.settings for name, variant in chosen.method.variants.items() if name != chosen.variant}
        others = [Setting(name, dict(values)) for name, values in named.items()]
        if not others:
            msg = f"{chosen.name} has no variants to compare; name settings with --settings FILE.yml"
            raise UsageError(msg)
    else:
        others = [Setting(one.name, {**own, **one.values}) for one in _of_file(path)]
    found = {one.digest: one for one in reversed((base, *others))}
    if len(found) == 1:
        msg = (
            f"all settings of {path or chosen.method.name} are those that {chosen.name} has: nothing is to be compared"
        )
        raise UsageError(msg)
    if len(found) > MOST:
        msg = f"{path}: at most {MOST} settings are compared at a time, got {len(found)}; leave some values out"
        raise UsageError(msg)
    return tuple(reversed(found.values()))


def _of_file(path: Path) -> Iterator[Setting]:
    document, twice = read_yaml(path)
    read = parse_yaml(SettingsFile, document, twice, where=str(path))
    for name, values in read.settings.items():
        yield Setting(name, values)
    if not read.grid:
        return
    count = 1
    for tried in read.grid.values():
        count *= len(tried)
    if count > MOST:
        msg = f"{path}: at most {MOST} settings are compared at a time, the grid has {count}; leave some values out"
        raise UsageError(msg)
    for combination in itertools.product(*read.grid.values()):
        one = dict(zip(read.grid, combination, strict=True))
        yield Setting(" ".join(f"{key}={_said(value)}" for key, value in one.items()), one)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _refuse_deaf(chosen: Chosen) -> None:
    """Refuse a method none of whose files reads the settings that it is handed."""
    for path in sorted(chosen.folder.rglob("*")):
        if path.is_file() and path.suffix in {".sh", ".py"} and VARIABLE in path.read_text("utf-8", errors="replace"):
            return
    msg = (
        f"{chosen.method.name} reads no settings (no script in {chosen.folder} mentions {VARIABLE}), so all would give"
    )
    raise UsageError(f"{msg} the same; make its run.sh read them")
