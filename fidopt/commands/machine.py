"""``fidopt machine``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fidopt.commands.options import Json, Results
from fidopt.commands.output import say, show, show_json


def machine(
    *,
    name: Annotated[str | None, Parameter(name=["--machine", "--name"])] = None,
    results: Results = None,
    json: Json = False,
) -> int:
    """Show the machine that this host's rows go to; its machine.json is made where none lists the host.

    Example: `fidopt machine`

    Parameters
    ----------
    name
        the machine's folder under the results, instead of the one that lists this host [FIDOPT_MACHINE]
    """
    from fidopt import resources
    from fidopt.results import machine_here

    roots = resources.roots(results=results)
    here = machine_here(roots, name=name, say=say)
    if json:
        show_json(here.model_dump(mode="json", by_alias=True))
    else:
        hosts = ", ".join(here.hostnames) or "no host"
        show(
            f"{here.name} ({roots.results / here.name}), for {hosts}\n"
            f"{here.cpu}, {here.cores} cores, {here.ram_gib} GiB, {here.gpu or 'no GPU'}; "
            f"methods run on at most {here.threads} threads"
        )
    return 0
