"""Licences as SPDX expressions: what can be said of a text before anybody judges the terms."""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from fidopt.descriptors.base import Text

if TYPE_CHECKING:
    from license_expression import LicenseExpression, Licensing

#: What SPDX writes where no licence is stated, or where nobody has looked.
UNSTATED = frozenset({"NONE", "NOASSERTION"})
#: What stands in a descriptor until somebody has filled in its licence.
TO_FILL = "LicenseRef-to-fill"
#: Terms of the owner's own, which no list of licences knows.
OWN_TERMS = re.compile(r"^(?:DocumentRef-[A-Za-z0-9.-]+:)?LicenseRef-[A-Za-z0-9.-]+$")

#: Most of what descriptors say: known without loading the list of all licences, which takes as long as a small command.
_PLAIN = re.compile(
    r"^(?:Apache-2\.0|MIT|ISC|Zlib|Unlicense|BSD-[23]-Clause|CC0-1\.0|CC-BY(?:-NC)?(?:-SA|-ND)?-[34]\.0"
    r"|(?:A|L)?GPL-3\.0-(?:only|or-later)|NONE|NOASSERTION|LicenseRef-[A-Za-z0-9.-]+)$"
)


@cache
def licensing() -> Licensing:
    """Return the list of SPDX's licences and exceptions."""
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def expression(text: str) -> LicenseExpression:
    """Read an SPDX expression; identifiers it knows are spelt as SPDX does, whatever their case.

    Raises
    ------
    ValueError
        When it is no expression; the message says "must be ...".
    """
    from license_expression import ExpressionError, ExpressionParseError

    try:
        read = licensing().parse(re.sub(r"[A-Za-z0-9.-]+\+", _or_later, text))
    except (ExpressionError, ExpressionParseError) as error:
        why = " ".join(str(error).split())
        msg = f"must be an SPDX licence expression such as CC-BY-4.0 or MIT AND CC0-1.0 ({why})"
        raise ValueError(msg) from error
    if read is None:
        msg = "must be an SPDX licence expression such as CC-BY-4.0 or MIT AND CC0-1.0"
        raise ValueError(msg)
    return read


def _or_later(found: re.Match[str]) -> str:
    # "or any later version" lets its user choose the one that is named, and only some have a name of their own for it.
    name = found[0]
    known = {key.lower() for key in licensing().known_symbols}
    return name if name.lower() in known or name[:-1].lower() not in known else name[:-1]


def unknown(text: str) -> list[str]:
    """Return the names of an expression that SPDX does not list and that are not an owner's own terms."""
    found: list[str] = licensing().unknown_license_keys(expression(text), unique=True)
    return [name for name in found if name not in UNSTATED and not OWN_TERMS.match(name)]


def unknown_sentence(names: list[str]) -> str:
    """Say in one sentence which names SPDX does not list, and what each may have been meant to be."""
    listed = list(licensing().known_symbols)
    said = []
    for name in names:
        close = difflib.get_close_matches(name.replace(" ", "-"), listed, n=1)
        said.append(f"{name!r}" + (f" (did you mean {close[0]}?)" if close else ""))
    are = "is no SPDX identifier" if len(said) == 1 else "are no SPDX identifiers"
    return f"{' and '.join(said)} {are}; terms of an owner's own are LicenseRef-NAME"


def _spdx(text: str) -> str:
    if _PLAIN.match(text):
        return text
    names = unknown(text)
    if names:
        msg = f"must be an SPDX licence expression: {unknown_sentence(names)}"
        raise ValueError(msg)
    return text


#: A licence as an SPDX expression of listed identifiers, of ``LicenseRef-NAME``, or NOASSERTION where none is stated.
Spdx = Annotated[Text, AfterValidator(_spdx)]
