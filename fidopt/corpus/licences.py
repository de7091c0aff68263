"""What the terms of a dataset or of a method allow: to be ranked, to be released, or only to be run here.

Three rules, each on every part of the terms. Of ``A AND B`` both must pass; of ``A OR B`` one, since who takes it may
choose; ``A WITH E`` passes where A does and E is known to take nothing away. An owner's own terms
(``LicenseRef-...``), terms that nobody stated and names that SPDX does not list pass nowhere.

ranked
    A dataset whose licence is open and allows commercial use (:data:`LICENCES`); a method whose code and weights are
    under :data:`METHOD_LICENCES`.
released
    A dataset by the same rule, since what is published of it, pictures too, may be sold; a method that may be handed
    on to others, copyleft too (:data:`SHARED_LICENCES`).
only run here
    Everything else: built, run, scored and shown, apart.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fidopt.descriptors.spdx import TO_FILL, UNSTATED, expression, licensing, unknown, unknown_sentence

if TYPE_CHECKING:
    from license_expression import LicenseExpression

#: Open licences of data that allow commercial use, by SPDX identifier.
LICENCES = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC-BY-1.0",
        "CC-BY-2.0",
        "CC-BY-2.5",
        "CC-BY-2.5-AU",
        "CC-BY-3.0",
        "CC-BY-3.0-AT",
        "CC-BY-3.0-AU",
        "CC-BY-3.0-DE",
        "CC-BY-3.0-IGO",
        "CC-BY-3.0-NL",
        "CC-BY-3.0-US",
        "CC-BY-4.0",
        "CC-BY-SA-1.0",
        "CC-BY-SA-2.0",
        "CC-BY-SA-2.0-UK",
        "CC-BY-SA-2.1-JP",
        "CC-BY-SA-2.5",
        "CC-BY-SA-3.0",
        "CC-BY-SA-3.0-AT",
        "CC-BY-SA-3.0-DE",
        "CC-BY-SA-3.0-IGO",
        "CC-BY-SA-4.0",
        "CC-PDM-1.0",
        "CC0-1.0",
        "CDLA-Permissive-1.0",
        "CDLA-Permissive-2.0",
        "CDLA-Sharing-1.0",
        "DL-DE-BY-2.0",
        "DL-DE-ZERO-2.0",
        "ISC",
        "MIT",
        "MIT-0",
        "NLOD-2.0",
        "O-UDA-1.0",
        "ODC-By-1.0",
        "ODbL-1.0",
        "OGL-Canada-2.0",
        "OGL-UK-3.0",
        "PDDL-1.0",
        "Unlicense",
        "Zlib",
        "etalab-2.0",
    }
)

#: Licences of code and weights under which a method is ranked.
METHOD_LICENCES = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-1-Clause",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSD-4-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "Unlicense",
        "Zlib",
    }
)

#: Licences under which a method may be handed on to others, with its source or its name where they ask for that.
SHARED_LICENCES = METHOD_LICENCES | {
    "AFL-3.0",
    "AGPL-3.0-only",
    "AGPL-3.0-or-later",
    "Artistic-2.0",
    "BSL-1.0",
    "CC-BY-3.0",
    "CC-BY-4.0",
    "CC-BY-SA-3.0",
    "CC-BY-SA-4.0",
    "CECILL-2.1",
    "CECILL-B",
    "CECILL-C",
    "EPL-2.0",
    "EUPL-1.2",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "GPL-3.0-only",
    "GPL-3.0-or-later",
    "HPND",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "MPL-2.0",
    "NCSA",
    "PSF-2.0",
    "Python-2.0",
}

#: Exceptions that only add to what a licence allows.
HARMLESS = frozenset(
    {
        "Autoconf-exception-3.0",
        "Bison-exception-2.2",
        "Classpath-exception-2.0",
        "Font-exception-2.0",
        "GCC-exception-2.0",
        "GCC-exception-3.1",
        "LGPL-3.0-linking-exception",
        "LLVM-exception",
        "Libtool-exception",
        "OCaml-LGPL-linking-exception",
        "Qt-LGPL-exception-1.1",
        "Swift-exception",
        "WxWindows-exception-3.1",
    }
)


@dataclass(frozen=True)
class Terms:
    """What may be done with a dataset or a method.

    Parameters
    ----------
    ranked
        It may stand in an official leaderboard.
    released
        It, or what is made of it, may be handed on to others.
    reason
        Why it may not be ranked, in a clause that goes on from "its licence"; None where it may.
    """

    ranked: bool
    released: bool
    reason: str | None = None

    @property
    def only_here(self) -> bool:
        """Whether it may only be run here: neither ranked nor released."""
        return not (self.ranked or self.released)


def data_terms(spdx: str) -> Terms:
    """Return what the terms of a dataset allow.

    Parameters
    ----------
    spdx
        An SPDX expression. One that cannot be read, or that names what SPDX does not list, allows nothing.
    """
    barriers = _barriers(spdx, LICENCES)
    return Terms(not barriers, not barriers, _reason(spdx, barriers, wanted="open licence that allows commercial use"))


def method_terms(code: str, weights: str | None = None) -> Terms:
    """Return what the terms of a method's code and of its weights, where it has any, allow together."""
    both = f"({code}) AND ({weights})" if weights else code
    ranked = _barriers(both, METHOD_LICENCES)
    shared = _barriers(both, SHARED_LICENCES)
    return Terms(not ranked, not shared, _reason(both, ranked, wanted="licence that methods are ranked under"))


def _reason(spdx: str, barriers: list[str], *, wanted: str) -> str | None:
    if not barriers:
        return None
    try:
        strange = unknown(spdx)
    except ValueError as error:
        return f"cannot be read: it {error}"
    if strange:
        return f"cannot be judged: {unknown_sentence(strange)}"
    stated = [name for name in barriers if name not in {*UNSTATED, TO_FILL}]
    if stated:
        return f"is no {wanted} ({', '.join(stated)})"
    return f"is to be filled in ({TO_FILL})" if TO_FILL in barriers else "is not stated"


def _barriers(spdx: str, allowed: AbstractSet[str]) -> list[str]:
    """Return the parts of an expression that are not allowed, in its order; none where it passes."""
    try:
        # A name that means nothing may be a slip that changes the meaning of the others: "MIT or later".
        return unknown(spdx) or list(dict.fromkeys(_missing(expression(spdx), allowed)))
    except ValueError:
        return [spdx]


def _missing(tree: LicenseExpression, allowed: AbstractSet[str]) -> list[str]:
    from license_expression import LicenseWithExceptionSymbol

    if isinstance(tree, LicenseWithExceptionSymbol):
        base = _missing(tree.license_symbol, allowed)
        return base or ([] if tree.exception_symbol.key in HARMLESS else [str(tree)])
    if not tree.args:
        return [] if tree.key in allowed else [str(tree.key)]
    parts = [_missing(part, allowed) for part in tree.args]
    if isinstance(tree, licensing().OR) and not all(parts):
        return []
    return [name for part in parts for name in part]
