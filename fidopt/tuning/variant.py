"""The settings that were found best, written into method.json as a variant of tier 2 that names its cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fidopt.descriptors.base import Name, parse
from fidopt.descriptors.editing import edited
from fidopt.descriptors.method import Method, Variant
from fidopt.errors import UsageError
from fidopt.images.atomic import written_whole
from fidopt.resources import packaged_share
from fidopt.runner.methods import Chosen
from fidopt.tuning.settings import Setting


def refuse_name(chosen: Chosen, name: str) -> None:
    """Refuse a name that no variant may have, one that there is already, and a method whose folder is the package's.

    Raises
    ------
    UsageError
        With what to choose instead.
    """
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        msg = f"{name!r} cannot name a variant: letters, digits, '.', '_' and '-' are"
        raise UsageError(msg) from error
    if name in chosen.method.variants:
        msg = f"{chosen.method.name} has a variant {name!r} already; choose another name, or take it out of method.json"
        raise UsageError(msg)
    packaged = packaged_share()
    if packaged.name == "_share" and packaged.resolve() in chosen.folder.resolve().parents:
        msg = f"{chosen.folder} is part of the installed package; copy the folder into methods/ of your own folder and"
        raise UsageError(f"{msg} name that with --share")


def write_variant(chosen: Chosen, name: str, setting: Setting, *, cases: Sequence[str], source: str) -> Path:
    """Add a variant to a method's descriptor; everything else in the file stays as its writer left it.

    Parameters
    ----------
    chosen, name
        The method and the variant's name.
    setting
        Its settings.
    cases
        ``DATASET/CASE``: what it was tuned on. It is shown on their datasets.
    source
        Who chose the settings, and by what.

    Returns
    -------
    Path
        The method.json.
    """
    path = chosen.folder / "method.json"
    text = path.read_text(encoding="utf-8")
    variant = Variant(
        tier=2,
        datasets=tuple(dict.fromkeys(case.partition("/")[0] for case in cases)),
        tuned_on=tuple(cases),
        source=source,
        settings=dict(setting.values),
    )
    document: dict[str, Any] = variant.model_dump(mode="json")
    variants = {**json.loads(text).get("variants", {}), name: document}
    changed = edited(text, {"variants": variants}, order=list(Method.model_fields))
    parse(Method, changed, where=str(path))
    with written_whole(path) as part:
        part.write_text(changed, encoding="utf-8")
    return path
