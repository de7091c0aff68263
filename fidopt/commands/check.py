"""``fidopt check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Where
from fidopt.commands.output import progress, say, show, show_json

if TYPE_CHECKING:
    from fidopt.check.real import OnCase
    from fidopt.check.session import Checks


def check(
    method: str,
    /,
    *,
    on: Annotated[tuple[str, str] | None, Parameter(help="a dataset and one of its built cases")] = None,
    where: Where | None = None,
    json: Json = False,
) -> int:
    """Tell whether a method's displacement fields mean what the contract says, and what they mean where they do not.

    The method registers small pairs whose motion is known: an oblique volume with permuted axes and uneven spacing, the
    moving image once on its grid and once on another, and where it takes 2D a colour image turned by 215 degrees. Its
    field as written has to find the motion to 1 mm, and every wrong reading of it (signs, order of the components,
    frame, spacing, unit, place instead of displacement) has to miss. Where another reading is right, it is named.

    With `--on DATASET CASE` the real scorer judges instead: on that case, only the field as written may beat the zero
    field. This is the check of methods trained on anatomy, to which blobs mean nothing.

    The verdicts are kept in `check.json` beside the method. The exit code is 1 unless all are good.

    Example: `fidopt check demons`, `fidopt check demons --on lung_ct case01`

    Parameters
    ----------
    method
        a method's name, or METHOD@VARIANT
    """
    roots = (where or Where()).roots()
    if on is not None:
        from fidopt.check.real import check_on_case

        with progress(f"checking {method} on {on[0]}/{on[1]}") as report:
            judged = check_on_case(method, *on, roots=roots, say=say, progress=report)
        return _show_case(judged, json=json)
    from fidopt.check.session import check_method

    with progress(f"checking {method}") as report:
        found = check_method(method, roots=roots, say=say, progress=report)
    return _show_pairs(found, json=json)


def _show_pairs(found: Checks, *, json: bool) -> int:
    if json:
        from fidopt.check.keeping import verdict

        pairs = {name: verdict(one).model_dump(mode="json") for name, one in found.findings.items()}
        show_json(
            {
                "method": found.name,
                "passed": found.passed,
                "summary": found.summary,
                "pairs": pairs,
                "file": str(found.file),
            }
        )
        return int(not found.passed)
    for name, one in found.findings.items():
        show(f"{found.name}: {name:10} {'passes' if one.state == 'right' else 'fails':7} {one.said}")
    show(f"{found.name}: {found.summary}; kept in {found.file}")
    return int(not found.passed)


def _show_case(judged: OnCase, *, json: bool) -> int:
    if json:
        kept = judged.verdict.model_dump(mode="json")
        show_json({"method": judged.name, "case": judged.case, **kept, "file": str(judged.file)})
    else:
        for words, value in judged.verdict.readings.items():
            show(f"{judged.name} on {judged.case}: {'-' if value is None else f'{value:.4g}':>8} read {words}")
        show(f"{judged.name} on {judged.case}: {judged.verdict.said}; kept in {judged.file}")
    return int(not judged.verdict.passed)
