"""All comparisons there are, and whose cannot be made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.parity import registration, segmentation
from tests.parity.comparison import Comparison
from tests.parity.inputs import Scored
from tests.parity.peers import DEEPMIND, PEERS, Peer


def absent() -> tuple[Peer, ...]:
    """Return the peers that are not installed here."""
    return tuple(peer for peer in PEERS if not peer.here)


def comparisons(folder: Path) -> Iterator[Comparison]:
    """Yield every comparison that can be made here, its cases built in a folder."""
    scored = Scored(folder)
    if DEEPMIND.here:  # Learn2Reg calls it
        yield from registration.learn2reg_labels(scored)
    yield from registration.learn2reg_field(scored)
    yield from registration.learn2reg_landmarks(scored)
    yield from registration.anhir(scored)
    yield from segmentation.empties(scored, None)
    for peer in PEERS:
        if peer.here:
            yield from segmentation.peers(scored, peer)
    yield from segmentation.konfai(scored)
