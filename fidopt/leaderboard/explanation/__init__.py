"""What cost what in one row: its labels, landmarks and regions, as numbers, as tables and as a picture."""

from fidopt.leaderboard.explanation.costs import explain
from fidopt.leaderboard.explanation.finding import Found, find
from fidopt.leaderboard.explanation.kinds import (
    Change,
    Explanation,
    LabelCost,
    LandmarkCost,
    RegionCost,
    Regularity,
)

__all__ = [
    "Change",
    "Explanation",
    "Found",
    "LabelCost",
    "LandmarkCost",
    "RegionCost",
    "Regularity",
    "explain",
    "find",
]
