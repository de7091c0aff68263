"""``fidopt setup``."""

from __future__ import annotations

from fidopt.commands.options import Json, Share
from fidopt.commands.output import say, show, show_json


def setup(method: str, /, *, share: Share = None, json: Json = False) -> int:
    """Make a method's own environment, at the versions it pins; one that is there already is left as it is.

    Environments lie under FIDOPT_ENVS, by default in your cache folder. With `all`, a method whose environment
    cannot be made here is named and the others are made: the exit code is then 1.

    Example: `fidopt setup demons`

    Parameters
    ----------
    method
        a method's name, or `all`
    """
    from fidopt import resources
    from fidopt.errors import MissingError
    from fidopt.runner import environment, methods

    roots = resources.roots(share=share)
    found = methods.known(roots) if method == "all" else [methods.find(method, roots)]
    places: dict[str, str] = {}
    missing: dict[str, str] = {}
    for chosen in found:
        try:
            places[chosen.method.name] = str(environment.ensure(chosen.method, chosen.folder, roots, say=say))
        except MissingError as error:
            if method != "all":
                raise
            missing[chosen.method.name] = str(error)
            say(str(error))
    if json:
        show_json({"environments": places, "missing": missing})
    else:
        show("\n".join(f"{name}: ready in {place}" for name, place in places.items()))
    return 1 if missing else 0
