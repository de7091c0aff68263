"""Where the rows of tuning lie, apart from results, and which of them still stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fidopt import __version__, corpus, results
from fidopt.corpus import Case
from fidopt.descriptors.base import dump, load
from fidopt.descriptors.checksums import Checksums
from fidopt.descriptors.rows import Row
from fidopt.descriptors.tuning import TunedRow
from fidopt.errors import DescriptorError
from fidopt.images.atomic import written_whole
from fidopt.resources import Roots
from fidopt.runner.methods import folder_digest
from fidopt.tuning.settings import Setting

#: Files of a method's folder that no run depends on; its descriptor's part, the version, is a row's own.
_ASIDE = ("method.json", "NOTES.md", "check.json")


@dataclass(frozen=True)
class Place:
    """Where one row goes, and what it has to have been made from to stand.

    Parameters
    ----------
    folder
        TUNING/MACHINE/METHOD.
    method, version, code
        The line that is tuned, its version and the digest of its files.
    setting
        The settings.
    case, files
        The development case, and the digest of its built files.
    """

    folder: Path
    method: str
    version: str
    code: str
    setting: Setting
    case: Case
    files: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Setting, dataset and case by their names."""
        return self.setting.name, self.case.dataset.name, self.case.name

    @property
    def path(self) -> Path:
        """The row's file."""
        return self.folder / self.case.dataset.name / self.case.name / f"{self.setting.digest}.json"

    def read(self) -> Row | None:
        """Return the row that stands: of the same code, version and files; None where there is none.

        A file that was torn, or that another fidopt wrote otherwise, counts as none.
        """
        if not self.path.is_file():
            return None
        try:
            kept = load(TunedRow, self.path)
        except DescriptorError:
            return None
        same = (kept.code, kept.files, kept.row.method_version) == (self.code, self.files, self.version)
        return kept.row if same and dict(kept.settings) == dict(self.setting.values) else None

    def write(self, row: Row, *, host: str, at_once: int) -> None:
        """Write the row, whole or not at all."""
        kept = TunedRow(
            method=self.method,
            settings=dict(self.setting.values),
            dataset=self.case.dataset.name,
            case=self.case.name,
            files=self.files,
            code=self.code,
            host=host,
            at_once=at_once,
            row=row,
        )
        with written_whole(self.path) as part:
            part.write_text(dump(kept), encoding="utf-8")


def code_of(folder: Path) -> str:
    """Return the digest of the files of a method's folder that its runs depend on, whatever its descriptor says."""
    return folder_digest(folder, aside=_ASIDE)


def files_of(case: Case, roots: Roots) -> str:
    """Return the digest of a built case: as it lies, or, of a large dataset, as it was recorded."""
    recorded = corpus.checksums(case.dataset.name, roots, development=True) if case.dataset.large else None
    known = recorded.cases.get(case.name) if recorded else None
    entries = known or results.case_digests(case.folder)
    return Checksums(fidopt=__version__, cases={case.name: entries}).digest
