"""KonfAI's evaluator, run in this process: what it is asked, what it answers, and the file it resolved."""

from __future__ import annotations

import importlib.util
import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fidopt.errors import InputError, MissingError
from fidopt.scoring.plan import Metrics

#: KonfAI keeps its state in the process: one evaluation at a time.
_ALONE = threading.Lock()


@dataclass(frozen=True)
class Report:
    """What KonfAI measured on one case.

    Parameters
    ----------
    values
        ``output:target:Name`` or, for one label or point of it, ``output:target:Name:part`` -> value, None where it is
        not a number.
    resolved
        The text of the file that KonfAI resolved, its roots relative to where they were staged.
    """

    values: dict[str, float | None]
    resolved: str


@contextmanager
def console() -> Iterator[None]:
    """Wait until no thread evaluates, and let none begin: KonfAI has the process's stdout and stderr meanwhile.

    What another thread printed to them would end in KonfAI's log.
    """
    with _ALONE:
        yield


def require_konfai() -> None:
    """Refuse to score where KonfAI or torch is absent.

    Raises
    ------
    MissingError
        With the command that installs them.
    """
    absent = [name for name in ("konfai", "torch") if importlib.util.find_spec(name) is None]
    if absent:
        msg = f"scoring runs KonfAI's evaluator, and {' and '.join(absent)} cannot be imported here; install what it"
        msg = f"{msg} needs: pip install 'fidopt[score]'"
        raise MissingError(msg)


def evaluate(metrics: Metrics, *, roots: Sequence[str], name: str, case: str, folder: Path) -> Report:
    """Run KonfAI's evaluator on one staged case.

    Parameters
    ----------
    metrics
        What is measured, as an evaluation file's blocks say.
    roots
        Staged data, as KonfAI names it: path, colon, format.
    name
        Name of the evaluation.
    case
        Name of the staged case.
    folder
        An empty folder for what KonfAI writes; the roots lie in it.

    Raises
    ------
    MissingError
        Where KonfAI or torch is absent.
    InputError
        Where KonfAI refuses what it was given.
    """
    require_konfai()
    from konfai import api
    from konfai.utils.errors import KonfAIError, KonfAIWarning

    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # KonfAI warns of a key it does not know, a case it cannot read, two grids that differ: none may pass here.
        warnings.simplefilter("error", KonfAIWarning)
        try:
            result = api.evaluate(
                name, list(roots), metrics, evaluations_dir=folder / "evaluations", overwrite=True, quiet=True
            )
        except (KonfAIError, KonfAIWarning) as error:
            msg = f"{name}/{case}: KonfAI's evaluator refused the case: {' '.join(str(error).split())}"
            raise InputError(msg) from error
    measured = result.metrics["TRAIN"]["case"]
    values = {key: _number(cases[case]) for key, cases in measured.items()}
    resolved = (result.workspace / "Evaluator.yml").read_text(encoding="utf-8")
    return Report(values, resolved.replace(f"{folder}/", ""))


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
