"""The cases that settings are chosen on: development cases of a family, and no other."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from fidopt import corpus
from fidopt.corpus import Case
from fidopt.descriptors.dataset import Dataset
from fidopt.errors import UsageError
from fidopt.resources import Roots
from fidopt.runner.methods import Chosen, refuse_unfit


def development_cases(
    family: str, names: Sequence[str], chosen: Chosen, roots: Roots, *, say: Callable[[str], None]
) -> list[Case]:
    """Return the built development cases of a family's datasets that a method takes.

    Parameters
    ----------
    family
        A name of families.json.
    names
        ``DATASET/CASE``, some of them; none means all.
    chosen
        The method.
    say
        Told what is left out, and why.

    Raises
    ------
    UsageError
        When there is no such family, a name is no development case of it, or no case is left.
    """
    described = {name: corpus.dataset(name, roots) for name in _members(family, roots)}
    wanted = _named(family, names, described)
    found: list[Case] = []
    for name, dataset in described.items():
        cases = [case for one, case in wanted if one == name] if names else list(dataset.development)
        if names and not cases:
            continue
        why = _why_not(dataset, chosen)
        if why:
            say(f"{name} is left out: {why}")
            continue
        built = [Case(dataset, case, corpus.case_dir(roots, dataset, case)) for case in cases]
        absent = [case.name for case in built if not case.folder.is_dir()]
        if absent:
            say(f"{name}: {', '.join(absent)} not built in {roots.corpus}; fidopt build {name} --development")
        found += [case for case in built if case.folder.is_dir() and case.has_images]
    if not found:
        msg = (
            f"the family {family} has no built development case that {chosen.method.name} takes; draw some (fidopt draw"
        )
        raise UsageError(f"{msg} DATASET --development 10) and build them (fidopt build DATASET --development)")
    return found


def _members(family: str, roots: Roots) -> tuple[str, ...]:
    families = corpus.families(roots).root
    if family in families:
        return families[family]
    close = difflib.get_close_matches(family, families, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    within = sorted(name for name, members in families.items() if family in members)
    also = f"; {family} is a dataset of: {', '.join(within)}" if within else ""
    msg = f"families.json has no family {family!r}{meant}{also}; there are: {', '.join(families) or 'none'}"
    raise UsageError(msg)


def _named(family: str, names: Sequence[str], described: dict[str, Dataset]) -> list[tuple[str, str]]:
    """Return the (dataset, case) of names; a test case is refused, whatever it is wanted for."""
    found = []
    for name in names:
        dataset, slash, case = name.partition("/")
        if not slash or dataset not in described:
            msg = f"DATASET/CASE of the family {family} is expected, got {name!r}; its datasets: {', '.join(described)}"
            raise UsageError(msg)
        if case in described[dataset].cases:
            msg = f"{name} is a test case: settings are chosen on development cases alone"
            raise UsageError(msg)
        if case not in described[dataset].development:
            held = ", ".join(described[dataset].development) or "none"
            msg = f"{dataset} has no development case {case!r}; they are: {held}"
            raise UsageError(msg)
        found.append((dataset, case))
    return found


def _why_not(dataset: Dataset, chosen: Chosen) -> str | None:
    if not dataset.development:
        return f"it has no development cases (fidopt draw {dataset.name} --development 10)"
    if dataset.to_fill:
        return f"its description is not filled in yet ({', '.join(dataset.to_fill)})"
    try:
        refuse_unfit(chosen, dataset)
    except UsageError as error:
        return str(error)
    return None
