"""``fidopt verify``."""

from __future__ import annotations

from fidopt.commands.options import Json, Where
from fidopt.commands.output import progress, say, show, show_json
from fidopt.errors import MissingError


def verify(dataset: str | None = None, /, *cases: str, where: Where | None = None, json: Json = False) -> int:
    """Compare every file of the built corpus with the recorded checksums.

    One changed byte is found wherever it lies, and named; so are files that are missing and files that do not
    belong. The exit code is 1 when there is a difference.

    Example: `fidopt verify lung_ct`; without a dataset, all that are built.

    Parameters
    ----------
    dataset
        name of a dataset; by default each that is built
    cases
        some of its cases; by default each that is built
    """
    from fidopt import building, corpus

    roots = (where or Where()).roots()
    if dataset is not None:
        chosen = [corpus.filled(corpus.dataset(dataset, roots))]
    else:
        chosen = [one for one in corpus.datasets(roots) if building.built_cases(one, roots)]
    if not chosen:
        msg = f"no dataset is built in {roots.corpus}; build one first: fidopt build DATASET"
        raise MissingError(msg)
    documents = []
    for one in chosen:
        names = tuple(cases) or building.built_cases(one, roots)
        with progress(f"verifying {one.name}") as report:
            found = building.verify(one, names, roots=roots, progress=report)
        recorded = corpus.checksums(one.name, roots)
        against = "recorded" if recorded and set(names) <= set(recorded.cases) else "built"
        rows = [{"case": d.case, "path": d.path, "problem": d.problem} for d in found]
        documents.append({"dataset": one.name, "cases": list(names), "against": against, "differences": rows})
        if json:
            continue
        for difference in found:
            say(f"{roots.corpus / one.name}/{difference}")
        differences = "1 difference" if len(found) == 1 else f"{len(found)} differences"
        show(f"{one.name}: {', '.join(names)}: {differences if found else f'every file as {_AGAINST[against]}'}")
    if json:
        show_json({"datasets": documents})
    return int(any(document["differences"] for document in documents))


_AGAINST = {"recorded": "recorded with the dataset", "built": "built here (no checksums are recorded with the dataset)"}
