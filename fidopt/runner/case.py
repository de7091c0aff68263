"""One method on one case: its inputs staged, run.sh run, what it wrote found, its cost measured."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fidopt.corpus import Case
from fidopt.descriptors.method import Method
from fidopt.descriptors.rows import Failure
from fidopt.runner.gpu import alone_on, gpu_of
from fidopt.runner.process import CannotStartError, Outcome, environment, supervise
from fidopt.runner.staging import Inputs, given, stage

#: What FIDOPT_SEED is unless the caller says otherwise.
SEED = 0


@dataclass(frozen=True)
class Order:
    """A method as it is to be run.

    Parameters
    ----------
    method, folder
        Its descriptor and the folder of its run.sh.
    environment
        Its own environment.
    threads
        How many it may use.
    variant
        The name of its settings, or None for its defaults.
    device
        ``cpu`` or ``cuda:0``.
    hidden
        Folders that no variable it is given may name.
    """

    method: Method
    folder: Path
    environment: Path
    threads: int
    variant: str | None = None
    device: str = "cpu"
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True)
class RunResult:
    """What a run left: a field, a label map or an image, or why there is none.

    Parameters
    ----------
    field
        The file of what was asked for (a displacement field, of a segmentation a label map, of a synthesis an image),
        which goes when the run's folder does; None after a failure.
    failure
        Why there is none.
    time_s, peak_ram_mib, peak_gpu_mib, threads
        Wall time of run.sh, peak memory of its processes here and on the GPU, and the threads it was given; None where
        it never started. The time is None too where it may have downloaded a model first, the memory of a GPU where
        none was used.
    log_tail
        The last lines it printed.
    """

    field: Path | None
    failure: Failure | None
    time_s: float | None
    peak_ram_mib: int | None
    threads: int
    log_tail: str
    peak_gpu_mib: int | None = None


def _silent(text: str) -> None:
    del text


@contextmanager
def run_case(order: Order, case: Case, *, say: Callable[[str], None] = _silent) -> Iterator[RunResult]:
    """Run a method on a case, in a folder of the run's own that is deleted when the block ends.

    Parameters
    ----------
    order
        The method, its environment and its settings.
    case
        A built case with images.
    say
        Told what a person should know: that a GPU is waited for, or that a run is not timed.

    Yields
    ------
    RunResult
        A method that crashes, overruns its time or writes nothing is a result too, never an exception.
    """
    case.require_images()
    scratch = Path(tempfile.mkdtemp(prefix="fidopt-run-")).resolve()
    try:
        for name in ("inputs", "output", "work", "tmp"):
            (scratch / name).mkdir()
        inputs = stage(case, order.method, scratch / "inputs")
        yield _run(order, case, inputs, scratch, say)
    finally:
        _remove(scratch)


def told(order: Order, case: Case, inputs: Inputs) -> dict[str, str]:
    """Return the variables a run.sh is given, as the contract names them."""
    dataset, method = case.dataset, order.method
    settings = method.variants[order.variant].settings if order.variant is not None else {}
    modalities = {role: dataset.modalities[role] for role in given(dataset.task)}
    if dataset.task == "registration":
        own = {f"FIDOPT_{role.upper()}_MODALITY": modality for role, modality in modalities.items()}
        own["FIDOPT_REGISTRATION"] = dataset.registration
    else:
        (modality,) = modalities.values()
        own = {"FIDOPT_MODALITY": modality}
    return {
        **own,
        "FIDOPT_DIMENSION": str(dataset.dimension),
        "FIDOPT_UNIT": dataset.unit,
        "FIDOPT_THREADS": str(order.threads),
        "FIDOPT_SEED": str(SEED),
        "FIDOPT_DEVICE": order.device,
        "FIDOPT_VARIANT": order.variant or "",
        "FIDOPT_SETTINGS": json.dumps(settings, sort_keys=True),
        "FIDOPT_ENV": str(order.environment),
        **{f"FIDOPT_{name.upper()}": str(path) for name, path in inputs.masks.items()},
    }


def _run(order: Order, case: Case, inputs: Inputs, scratch: Path, say: Callable[[str], None]) -> RunResult:
    variables = environment(told(order, case, inputs), threads=order.threads, hidden=order.hidden)
    for name in ("FIDOPT_FIXED_MASK", "FIDOPT_MOVING_MASK", "FIDOPT_MASK"):
        if name.removeprefix("FIDOPT_").lower() not in inputs.masks:
            variables.pop(name, None)
    words = ["bash", order.folder.resolve() / "run.sh", *inputs.images.values(), scratch / "output"]
    gpu = gpu_of(order.device, variables)
    try:
        with alone_on(gpu, say=say):
            outcome = supervise(
                [str(word) for word in words],
                variables={**variables, "TMPDIR": str(scratch / "tmp")},
                folder=scratch / "work",
                log=scratch / "run.log",
                timeout_s=order.method.timeout_s,
                gpu=gpu,
            )
    except CannotStartError as error:
        reason = f"run.sh could not be started: {error}"
        return RunResult(None, Failure(stage="setup", reason=reason), None, None, order.threads, "")
    names = _names(order.method, case)
    field = next((path for name in names if (path := scratch / "output" / name).exists()), None)
    failure = _failure(order.method, outcome, field, wanted=names[0], registers=case.dataset.task == "registration")
    return RunResult(
        None if failure else field,
        failure,
        _time_of(order, outcome, say, failed=failure is not None),
        outcome.peak_ram_mib,
        order.threads,
        outcome.log,
        outcome.peak_gpu_mib,
    )


def _time_of(order: Order, outcome: Outcome, say: Callable[[str], None], *, failed: bool) -> float | None:
    """Return how long a run took; None of the first that ends well where a model may be downloaded before it."""
    fetched = order.environment / f".fidopt-fetched-{order.variant or 'defaults'}"
    if order.method.network is None or fetched.exists():
        return outcome.time_s
    if not failed:
        fetched.touch()
    say(f"{order.method.name}: the first run in its environment is not timed: {order.method.network}")
    return None


def _names(method: Method, case: Case) -> tuple[str, ...]:
    """Return what run.sh may write, the name it should have first."""
    stem = {"registration": "DVF", "segmentation": "labels", "synthesis": "image"}[case.dataset.task]
    store, file = f"{stem}.ome.zarr", f"{stem}.nii.gz"
    return (store, file) if method.reads == "ome-zarr" else (file,)


def _failure(method: Method, outcome: Outcome, field: Path | None, *, wanted: str, registers: bool) -> Failure | None:
    if outcome.timed_out:
        reason = f"run.sh was ended after {method.timeout_s} s, the method's time limit"
        return Failure(stage="timeout", reason=reason, log_tail=outcome.log)
    if outcome.returncode != 0:
        how = f"exit code {outcome.returncode}" if outcome.returncode > 0 else f"signal {-outcome.returncode}"
        return Failure(stage="run", reason=f"run.sh ended with {how}", log_tail=outcome.log)
    if field is None:
        reason = f"run.sh ended well but wrote no {wanted}"
        return Failure(stage="field" if registers else "output", reason=reason, log_tail=outcome.log)
    return None


def said_of(failure: Failure) -> str:
    """Return why a case failed, with the last line that was printed where a script alone knows more.

    The row keeps the reason and the log apart: a reason is the same on a second run, what a tool prints is not.
    """
    lines = failure.log_tail.split("\n") if failure.stage == "run" and failure.log_tail else []
    return f"{failure.reason}; the last it printed: {lines[-1].strip()[:300]}" if lines else failure.reason


def _remove(scratch: Path) -> None:
    """Delete a run's folder, also what the method made unwritable."""

    def open_up(function: Callable[..., object], path: str, error: BaseException) -> None:
        del error
        with contextlib.suppress(OSError):
            os.chmod(Path(path).parent, stat.S_IRWXU)  # noqa: PTH101 - the handler's own signature is os.path's
            function(path)

    shutil.rmtree(scratch, onerror=lambda function, path, info: open_up(function, path, info[1]))
