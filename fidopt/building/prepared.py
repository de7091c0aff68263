"""What ``prepare.py`` makes of a provider's files: one folder a case, in ordinary formats."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fidopt.descriptors.dataset import Dataset
from fidopt.errors import InputError

#: What the files of a case may be called, without their suffix, by task.
_STEMS = {
    "registration": re.compile(
        r"(?P<side>fixed|moving)(?P<mask>_mask)?$"
        r"|truth/(fixed|moving)_(labels|landmarks)(_[a-z][a-z0-9]*)?$"
        r"|truth/(fixed|moving)_ignore$"
    ),
    "segmentation": re.compile(r"image$|truth/labels$"),
    "synthesis": re.compile(r"source$|mask$|truth/target$"),
}
#: The same in words.
_FILES = {
    "registration": "fixed, moving, fixed_mask, moving_mask and, for both sides, truth/SIDE_labels, "
    "truth/SIDE_landmarks (a further set: _NAME behind it) and truth/SIDE_ignore",
    "segmentation": "image and truth/labels",
    "synthesis": "source, mask and truth/target",
}


def prepare(cases: Sequence[str], *, script: Path, source: Path, target: Path) -> None:
    """Run ``prepare.py SOURCE TARGET CASE ...`` with this Python.

    Raises
    ------
    InputError
        When it fails, with the last lines it wrote, or when it leaves out a case.
    """
    target.mkdir()
    log = target.with_name(target.name + ".log")
    with log.open("w") as stream:
        command = [sys.executable, str(script.resolve()), str(source), str(target), *cases]
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False).returncode
    if code:
        lines = log.read_text(errors="replace").strip().splitlines()[-3:]
        msg = f"{script} failed with exit code {code}: {' / '.join(lines) or 'it wrote nothing'}"
        raise InputError(msg)
    absent = [case for case in cases if not (target / case).is_dir()]
    if absent:
        msg = f"{script} made no folder for {', '.join(absent)}; it must make one folder a case it is given"
        raise InputError(msg)


def entries(folder: Path, dataset: Dataset) -> dict[str, Path]:
    """Return the files of a prepared case by their place in the case, without suffix: ``truth/fixed_labels``.

    Raises
    ------
    InputError
        When there is no file, a file's name is not one of a case's, or two files have one place.
    """
    found: dict[str, Path] = {}
    for path in [*sorted(folder.iterdir()), *sorted((folder / "truth").glob("*"))]:
        if path == folder / "truth":
            continue
        stem = path.relative_to(folder).as_posix().split(".")[0]
        if not _STEMS[dataset.task].match(stem):
            msg = f"{path}: a {dataset.task} case has no file of that name; it may have {_FILES[dataset.task]}"
            raise InputError(msg)
        if stem in found:
            msg = f"{path}: {found[stem].name} is there already for {stem}; keep one"
            raise InputError(msg)
        found[stem] = path
    if not found:
        msg = f"{folder}: prepare.py made the folder and wrote nothing into it; a {dataset.task} case has files"
        raise InputError(msg)
    return found
