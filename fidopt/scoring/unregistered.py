"""Whether a field leaves a pair worse than it was: there a sign, a frame or an axis shows that no file tells of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fidopt.descriptors.rows import Row
from fidopt.errors import DescriptorError
from fidopt.results import read_rows

#: The line of the zero field.
UNREGISTERED = "identity"
#: What tells whether a field registers, and whether more of it is better.
_TELLING = {"dice": True, "tre": False, "hd95": False}

Metrics = Mapping[str, float | None]


@dataclass(frozen=True)
class Unregistered:
    """The unregistered pairs of a dataset, as far as they were scored.

    Parameters
    ----------
    results
        The results root.
    dataset, checksums
        Which, and the digest of its files: rows on others do not compare.
    """

    results: Path
    dataset: str
    checksums: str

    @cached_property
    def _rows(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for path in sorted(self.results.glob(f"*/{UNREGISTERED}/{self.dataset}.json")):
            try:
                rows = read_rows(path)
            except DescriptorError:
                continue  # what cannot be read spares nothing here, and a board says what is wrong with it
            if rows is not None and rows.checksums == self.checksums:
                found |= rows.rows
        return found

    def remark(self, method: str, case: str, metrics: Metrics, *, measure: Callable[[], Metrics]) -> str | None:
        """Return what to say of a case that a field left worse than it was, None where it did not.

        Parameters
        ----------
        method
            Whose field it is; the zero field's own is no worse than itself.
        metrics
            The field's.
        measure
            Scores the pair unregistered; asked where no row holds it.
        """
        telling = [metric for metric in _TELLING if metrics.get(metric) is not None]
        if method == UNREGISTERED or not telling:
            return None
        row = self._rows.get(case)
        worse = worse_in(metrics, row.metrics if row else measure())
        if not worse:
            return None
        msg = f"{self.dataset}/{case}: worse than no registration in {', '.join(worse)}; a field that should be better"
        return f"{msg} may have its sign, frame or axes the wrong way round, which fidopt check METHOD tells"


def worse_in(metrics: Metrics, before: Metrics) -> list[str]:
    """Return the metrics in which a field is worse than the pair was, with both values."""
    found = []
    for metric, more in _TELLING.items():
        now, then = metrics.get(metric), before.get(metric)
        if now is not None and then is not None and (now < then if more else now > then):
            found.append(f"{metric} ({now:.4g}, not {then:.4g})")
    return found
