"""tests/parity/README.md: what stands above the tables, and its lines read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.parity.comparison import Comparison, tables
from tests.parity.peers import PEERS

PAGE = Path(__file__).with_name("README.md")

HEAD = """# Ours beside others

Every figure below is of one input given to `fidopt` and to a challenge's definition or another package. Learn2Reg's
evaluation, ANHIR's relative error and BraTS's rule for empty regions are written anew in `definitions.py` from what
they do; the packages are called. `python -m tests.parity --write`, in a checkout, writes this page, and
`tests/parity/test_parity.py` holds each line to it: what should be equal is, and what differs on purpose differs by
the stated reason alone, wherever taking the reason away can be computed.

{packages}

MONAI comes with the extra `parity` of `pyproject.toml`. What is not installed is left out of the test with a reason.

"""


def page(comparisons: Sequence[Comparison]) -> str:
    """Return the page."""
    packages = "\n".join(f"- {peer.name}: {peer.where}" for peer in PEERS)
    return HEAD.format(packages=packages) + tables(comparisons)


def lines(text: str) -> dict[tuple[str, str, str], tuple[str, str, str]]:
    """Return the lines of a page's tables: whose, measure and input -> ours, theirs and why (empty where equal)."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) in (5, 6) and cells[0] != "whose":
            peer, measure, given, ours, theirs, *why = cells
            found[peer, measure, given] = (ours, theirs, why[0] if why else "")
    return found
