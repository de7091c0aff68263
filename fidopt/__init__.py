"""An open benchmark of image registration.

``fidopt.board(dataset)`` is a leaderboard as a data frame, ``fidopt.score(dataset, case, field)`` a field's row. They
are loaded when they are first asked for: ``import fidopt`` alone imports nothing else.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: Name -> the module that holds it. Named as text, so that the layers below do not depend on those above.
_LAZY = {"board": "fidopt.leaderboard.frame", "score": "fidopt.scoring.submission"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module holds
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_LAZY[name]), name)
