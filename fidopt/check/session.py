"""`fidopt check`: a method on the pairs it takes, or on a case of the corpus, and a verdict for each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fidopt.check import keeping
from fidopt.check.judging import Finding
from fidopt.check.scenes import Scene, scenes
from fidopt.check.synthetic import check_scene
from fidopt.descriptors.method import Method
from fidopt.errors import UsageError
from fidopt.resources import Roots
from fidopt.runner import environment, methods
from fidopt.runner.case import Order
from fidopt.runner.methods import Chosen

#: The method whose field is zero by right.
UNREGISTERED = "identity"


@dataclass(frozen=True)
class Checks:
    """What was found of a line.

    Parameters
    ----------
    name
        METHOD or METHOD@VARIANT.
    findings
        Name of a pair -> what was found there.
    summary
        One sentence on all pairs.
    file
        Where the verdicts are kept.
    """

    name: str
    findings: dict[str, Finding]
    summary: str
    file: Path

    @property
    def passed(self) -> bool:
        """Whether the convention is right on every pair."""
        return all(found.state == "right" for found in self.findings.values())


def check_method(
    name: str, *, roots: Roots, say: Callable[[str], None], progress: Callable[[int, int], None] | None = None
) -> Checks:
    """Run a method on every pair it takes and judge its fields.

    Parameters
    ----------
    name
        METHOD or METHOD@VARIANT.
    say, progress
        Told what goes on; told how many pairs are done of how many.

    Raises
    ------
    UsageError
        When it is no registration method, or its folder keeps no verdict.
    MissingError
        When its environment cannot be made.
    """
    chosen = prepared(name, roots)
    order = order_of(chosen, roots, say)
    found: dict[str, Finding] = {}
    todo = scenes(chosen.method.dimensions)
    for count, scene in enumerate(todo):
        if progress:
            progress(count, len(todo))
        with tempfile.TemporaryDirectory(prefix="fidopt-check-") as folder:
            one = check_scene(order, scene, Path(folder).resolve() / scene.name, log=say)
        found[scene.name] = _of_identity(one) if chosen.method.name == UNREGISTERED else one
    return Checks(chosen.name, found, summary(found, todo), keeping.keep(chosen, pairs=found))


def prepared(name: str, roots: Roots) -> Chosen:
    """Return the method to check, or refuse it."""
    chosen = methods.find(name, roots)
    if "registration" not in chosen.method.tasks:
        msg = f"{chosen.method.name} does {' and '.join(chosen.method.tasks)}, which has no field to check"
        raise UsageError(msg)
    if not (chosen.folder / "run.sh").is_file():
        msg = f"{chosen.folder} has no run.sh, the script that runs the method; write it, or fetch the method whole"
        raise UsageError(msg)
    keeping.refuse_packaged(chosen)
    return chosen


def order_of(chosen: Chosen, roots: Roots, say: Callable[[str], None]) -> Order:
    """Return the order to run a method by, its environment made."""
    made = environment.ensure(chosen.method, chosen.folder, roots, say=say)
    hidden = (roots.corpus, roots.archives, roots.results)
    return Order(
        chosen.method, chosen.folder, made, _threads(chosen.method), chosen.variant, device_for(chosen), hidden
    )


def device_for(chosen: Chosen) -> str:
    """Return ``cuda:0`` for a method that runs on a GPU where this host has one, else ``cpu``."""
    return "cuda:0" if chosen.method.device == "cuda" and Path("/dev/nvidia0").exists() else "cpu"


def summary(found: dict[str, Finding], looked: tuple[Scene, ...]) -> str:
    """Return one sentence on the verdicts of all pairs."""
    passed = [name for name, one in found.items() if one.state == "right"]
    if len(passed) == len(found):
        return "the convention is right on every pair"
    if "one_grid" in passed and "two_grids" in found and "two_grids" not in passed:
        other = found["two_grids"]
        if other.state == "wrong" and not any("moving image" in words for words in other.conventions):
            return f"right by chance on one of two motions: the other is found only read {other.conventions[0]}"
        return "right on the same grid only: with the moving image on another grid the field is not the contract's"
    titles = {scene.name: scene.title for scene in looked}
    return f"not right on: {'; '.join(titles[name] for name in found if name not in passed)}"


def _of_identity(found: Finding) -> Finding:
    if found.state != "zero":
        return found
    return replace(found, state="right", said="the field is zero, as that of the pair unregistered has to be")


def _threads(method: Method) -> int:
    return min(method.threads or os.cpu_count() or 1, os.cpu_count() or 1)
