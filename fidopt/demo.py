"""The whole house on two small real datasets, and a warp of a volume of several shards on a local Dask cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fidopt import building, corpus
from fidopt.cluster import connect
from fidopt.descriptors.base import shown
from fidopt.errors import FidoptError
from fidopt.leaderboard.board import Board, board
from fidopt.resources import Roots
from fidopt.runner.session import run_dataset

if TYPE_CHECKING:
    from distributed import Client

    from blocks.grid import Grid
    from blocks.transforms import Transform

#: Two datasets that come with packages, so that nothing else has to be downloaded, and what runs on each: no
#: registration, and methods of different kinds. elastix takes longer on a volume than all the rest together.
RUNS = {"retina": ("identity", "demons", "elastix"), "brain": ("identity", "demons")}
#: The warped volume is this much finer than the brain, an axis: several shards, as any image beyond 256 voxels.
FINER = 3


class Report(Protocol):
    """Told how much of a step is done."""

    def __call__(self, done: int, total: int, written: int = 0, /) -> None:
        """Take note of ``done`` of ``total``."""


@dataclass(frozen=True)
class Console:
    """Where the demo speaks.

    Parameters
    ----------
    say
        Prints a line.
    show
        Shows a board.
    progress
        Label -> a context in which a step reports how far it is.
    """

    say: Callable[[str], None]
    show: Callable[[Board], None]
    progress: Callable[[str], AbstractContextManager[Report]]


@dataclass(frozen=True)
class Outcome:
    """What the demo made.

    Parameters
    ----------
    boards
        One a dataset.
    pictures
        Folders with before.png and after.png of each method and case.
    failed
        Runs that failed.
    warped
        The store warped on the cluster.
    dashboard
        The address its dashboard had.
    voxels, shards
        Size of the warped volume.
    seconds
        Wall time of all of it.
    """

    boards: tuple[Board, ...]
    pictures: tuple[Path, ...]
    failed: int
    warped: Path
    dashboard: str
    voxels: int
    shards: int
    seconds: float


def roots_in(directory: Path, roots: Roots) -> Roots:
    """Return the folders of a demo: all it makes lies in one directory; descriptors and environments are the user's."""
    return Roots(roots.share, directory / "corpus", directory / "archives", directory / "results", roots.environments)


def demo(directory: Path, *, roots: Roots, console: Console) -> Outcome:
    """Build, verify, run, score and rank, then warp on a cluster; of what was done before only failures are done again.

    Parameters
    ----------
    directory
        Where everything goes.
    roots
        The user's folders, of which the descriptors and the methods' environments are used.
    console
        Where the demo speaks.

    Raises
    ------
    FidoptError
        When a package is missing, a case does not verify, or a method's environment cannot be made.
    """
    start = time.monotonic()
    mine = roots_in(directory, roots)
    boards, pictures, failed = [], [], 0
    with _cluster_ahead() as cluster:
        for name, methods in RUNS.items():
            _build(name, mine, console)
            for method in methods:
                drawn, failures = _run(method, name, mine, console)
                pictures += drawn
                failed += failures
            boards.append(board(name, roots=mine))
            console.show(boards[-1])
        warped, dashboard, voxels, shards = _warp(mine, directory / "warped.ome.zarr", console, cluster=cluster)
    seconds = time.monotonic() - start
    return Outcome(tuple(boards), tuple(pictures), failed, warped, dashboard, voxels, shards, seconds)


@contextmanager
def _cluster_ahead() -> Iterator[Callable[[], tuple[Client, str]]]:
    """Start a cluster beside the first step, which leaves a core idle; yield what waits for it and gives its client."""
    with ExitStack() as stack, ThreadPoolExecutor(max_workers=1) as pool:
        said: list[str] = []
        started = pool.submit(lambda: stack.enter_context(connect(dashboard=True, say=said.append)))

        def ready() -> tuple[Client, str]:
            client = started.result()
            assert client is not None
            return client, said[0].removeprefix("dashboard: ")

        yield ready


def _build(name: str, roots: Roots, console: Console) -> None:
    dataset = corpus.dataset(name, roots)
    with console.progress(f"building {name}") as report:
        built = building.build(dataset, roots=roots, progress=report)
    differences = building.verify(dataset, roots=roots)
    if differences:
        msg = f"{name} does not verify: {differences[0]}; delete {shown(roots.corpus / name)} and run the demo again"
        raise FidoptError(msg)
    console.say(f"{name}: {len(built)} pairs built and verified")


def _run(method: str, name: str, roots: Roots, console: Console) -> tuple[list[Path], int]:
    """Return the folders of the pictures of a method's pairs, and how many of them failed."""
    with console.progress(f"{method} on {name}") as report:
        finished = run_dataset(method, name, (), roots=roots, say=console.say, again="failed", progress=report)
    fresh, kept, failed = len(finished.done), len(finished.kept), len(finished.failed)
    done = f"run on {fresh} pairs" if fresh else f"kept, {kept} pairs"
    console.say(f"{name}: {method} {done}{f', {failed} failed' if failed else ''}")
    scored = [case for case in (*finished.done, *finished.kept) if case not in finished.failed]
    return [finished.line.previews(case) for case in scored], failed


def _warp(
    roots: Roots, out: Path, console: Console, *, cluster: Callable[[], tuple[Client, str]]
) -> tuple[Path, str, int, int]:
    """Warp the brain onto a finer grid, by shards, on worker processes of this machine."""
    import blocks

    brain = corpus.dataset("brain", roots)
    moving = blocks.open_image(corpus.case(brain, next(iter(brain.cases)), roots).moving)
    like = _finer(blocks.grid_of(moving))
    warped = blocks.warp(moving, _swirl(like), like)
    shards = math.prod(warped.data.numblocks)
    client, dashboard = cluster()
    size = "x".join(str(n) for n in like.shape[::-1])
    console.say(f"warping {size} voxels in {shards} shards on a Dask cluster; dashboard: {dashboard}")
    with console.progress("shards") as report:
        blocks.write_image(out, warped, overwrite=True, client=client, progress=report)
    return out, dashboard, math.prod(like.shape), shards


def _finer(grid: Grid) -> Grid:
    from blocks.grid import Grid

    corner = grid.world([(1 / FINER - 1) / 2] * grid.ndim)
    spacing = tuple(s / FINER for s in grid.spacing)
    return Grid(tuple(n * FINER for n in grid.shape), spacing, tuple(float(v) for v in corner), grid.direction)


def _swirl(grid: Grid) -> Transform:
    """Return a quarter of a right angle about the middle of the grid, then a wave of cubic B-splines."""
    import numpy as np

    from blocks.grid import Grid
    from blocks.transforms import Affine, BSpline, Composite

    middle = grid.world([(n - 1) / 2 for n in grid.shape])
    c, s = math.cos(math.pi / 8), math.sin(math.pi / 8)
    turn = Affine.rigid([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]], (0.0, 0.0, 0.0), centre=middle.tolist())
    length = [n * v for n, v in zip(grid.shape[::-1], grid.spacing, strict=True)]
    spacing = [side / 5 for side in length]
    direction = grid.direction_matrix
    corner = middle - direction @ (np.array(spacing) * 3.5)
    control = Grid.of((8, 8, 8), spacing=spacing, origin=corner.tolist(), direction=grid.direction)
    phase = np.indices(control.shape, dtype=np.float64)
    waves = np.stack([np.sin(phase[(axis + 1) % 3] * 1.3) for axis in range(3)]) * (0.04 * min(length))
    return Composite((turn, BSpline(control, waves)))
