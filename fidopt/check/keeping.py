"""A method's verdicts, kept beside it in methods/<name>/check.json."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fidopt import __version__
from fidopt.check.judging import Finding
from fidopt.descriptors.base import dump, load
from fidopt.descriptors.verdicts import Checked, RealVerdict, Verdict, Verdicts
from fidopt.errors import UsageError
from fidopt.images.atomic import written_whole
from fidopt.resources import packaged_share
from fidopt.runner.methods import Chosen, folder_digest

#: The file's name in a method's folder.
FILE = "check.json"
#: Which pairs and which judgement verdicts are made by; raised when either changes, so that no older verdict stands.
#: 2: the field is looked at well inside the body. 3: the two volumes are moved in two directions.
CHECK = 3
#: Files of a method's folder that no run depends on.
_ASIDE = (FILE, "NOTES.md")


def made_from(folder: Path) -> str:
    """Return the digest of what a method's runs depend on: every file of its folder but its notes and verdicts."""
    return folder_digest(folder, aside=_ASIDE)


def refuse_packaged(chosen: Chosen) -> None:
    """Refuse to check a method of the installed package, whose folder keeps no verdict.

    Raises
    ------
    UsageError
        When the method's folder is the installed package's.
    """
    packaged = packaged_share()
    if packaged.name == "_share" and packaged.resolve() in chosen.folder.resolve().parents:
        msg = f"{chosen.folder} is part of the installed package, and a verdict is kept beside its method; copy the"
        raise UsageError(f"{msg} folder into methods/ of your own folder and name that with --share")


def read(chosen: Chosen) -> Checked | None:
    """Return what is kept of a line, or None where it was never checked, or it or the check has changed since."""
    found = _lines(chosen).get(chosen.name)
    return found if found and (found.check, found.made_from) == (CHECK, made_from(chosen.folder)) else None


def keep(
    chosen: Chosen, *, pairs: dict[str, Finding] | None = None, cases: dict[str, RealVerdict] | None = None
) -> Path:
    """Write verdicts beside a method; those of other lines stay, and those of this one that are still its own.

    Parameters
    ----------
    pairs, cases
        Name of a pair -> what was found; ``dataset/case`` -> what the real scorer said.
    """
    path = chosen.folder / FILE
    known = read(chosen)
    checked = Checked(
        version=chosen.method.version,
        made_from=made_from(chosen.folder),
        check=CHECK,
        fidopt_version=__version__,
        date=datetime.now(tz=UTC).date().isoformat(),
        pairs={**(known.pairs if known else {}), **{name: verdict(found) for name, found in (pairs or {}).items()}},
        cases={**(known.cases if known else {}), **(cases or {})},
    )
    lines = dict(sorted({**_lines(chosen), chosen.name: checked}.items()))
    with written_whole(path) as part:
        part.write_text(dump(Verdicts(lines=lines)), encoding="utf-8")
    return path


def _lines(chosen: Chosen) -> dict[str, Checked]:
    """Return what is kept of a method and of the variants it has; a folder that was copied brings another's along."""
    path = chosen.folder / FILE
    own = {chosen.method.name, *(f"{chosen.method.name}@{name}" for name in chosen.method.variants)}
    kept = load(Verdicts, path).lines if path.is_file() else {}
    return {name: line for name, line in kept.items() if name in own}


def verdict(found: Finding) -> Verdict:
    """Return a finding as it is kept: its distances to a hundredth, so that a checked method stays as it is in git."""
    residual = None if found.residual is None else round(found.residual, 2)
    nearest = None if found.nearest is None else round(found.nearest, 2)
    return Verdict(
        passed=found.state == "right",
        state=found.state,
        said=found.said,
        residual=residual,
        nearest=nearest,
        conventions=found.conventions,
    )
