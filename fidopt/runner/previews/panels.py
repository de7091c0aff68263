"""How every picture of a case begins, and what stands below its planes."""

from __future__ import annotations

from collections.abc import Sequence

from fidopt.corpus import Case
from fidopt.images.preview import Panel, Picture, View

#: Pixels along a plane's longest side: of the plane in 2D, of each of the three planes in 3D.
SIDE = {2: 768, 3: 400}


#: What is said where a picture shows no more than that.
AROUND = "Drawn around the labels."


def titled(case: Case, name: str = "") -> str:
    """Return what every picture of a case begins with; ``name`` is a set's."""
    return f"{case.dataset.name}/{case.name}" + (f", {name}" if name else "")


def panels(where: Sequence[View], planes: Sequence[Picture]) -> list[Panel]:
    """Return planes with the words that say where they lie."""
    return [Panel(plane, view.name) for view, plane in zip(where, planes, strict=True)]
