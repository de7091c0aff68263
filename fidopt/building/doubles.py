"""No image twice, and one image on one side of the partition, whatever the task: looked for by what images hold.

An image is known by the digest of its voxels and type (:mod:`fidopt.images.voxels`), as it was noted when its case was
built here, else as it is recorded with its dataset. What is looked for:

* one image in two datasets of the same task: methods would be ranked twice on it;
* one image in a test case and in a development case, of whatever datasets and tasks: settings would be chosen on what
  is then scored. A segmentation or synthesis dataset may hold a registration dataset's image on the same side;
* one image on both sides of a pair, or under the names of two subjects of a dataset;
* one subject of one source in a test case and in a development case, whatever the images: its anatomy would be known.

An image of one value or of fewer than 256 voxels is nobody's double: it has no digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from fidopt.building.records import read_record, recorded, voxel_digests
from fidopt.corpus import case_dir, dataset_folder, datasets, pool
from fidopt.corpus.drawing import candidates
from fidopt.descriptors.dataset import ROLES, Dataset, Task
from fidopt.resources import Roots

Kind = Literal["twice", "partition", "both-sides", "two-subjects", "subject"]
Side = Literal["test", "development"]
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Place:
    """Where an image is.

    Parameters
    ----------
    dataset, task, case, path
        Which dataset, of which task, and which store of which case; no store where a subject is meant.
    side
        Of the partition.
    subject
        Whose image it is; empty where the descriptor does not say.
    """

    dataset: str
    task: Task
    case: str
    path: str
    side: Side
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.dataset}/{self.case}/{self.path}".rstrip("/")


@dataclass(frozen=True)
class Double:
    """One image in two places where it may not be.

    Parameters
    ----------
    kind
        ``twice``: in two datasets of one task; ``partition``: in a test and in a development case; ``both-sides`` of
        one pair; ``two-subjects``: under two names; ``subject``: one in a test and in a development case.
    places
        The two.
    """

    kind: Kind
    places: tuple[Place, Place]

    def __str__(self) -> str:
        one, other = self.places
        if self.kind in {"partition", "subject"}:
            test, development = sorted(self.places, key=lambda place: place.side, reverse=True)
            what = "the same image" if self.kind == "partition" else f"images of one subject, {one.subject!r}"
            whose = "an image" if self.kind == "partition" else "a subject"
            return (
                f"{test} (test) and {development} (development) hold {what}: {whose} of a test case is one "
                f"in every task; take {development.case} out of {development.dataset}'s development"
            )
        said = f"{one} and {other} hold the same image"
        if self.kind == "twice":
            return f"{said}: no image is in two {one.task} datasets; leave it to one of the two"
        if self.kind == "both-sides":
            return f"{said}: nothing is left to register; mend the dataset's prepare.py"
        return f"{said}, under the subjects {one.subject!r} and {other.subject!r}; one of the two names is wrong"


@dataclass
class Search:
    """What was looked at, and what was found.

    Parameters
    ----------
    images
        How many images were compared.
    datasets
        Names of the datasets they are in.
    unknown
        Cases, as DATASET/CASE, that are neither built here nor recorded with what their images hold.
    doubles
        What was found.
    """

    images: int = 0
    datasets: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    doubles: list[Double] = field(default_factory=list)


def search(roots: Roots, *, progress: Report | None = None) -> Search:
    """Look for images that are in two places where they may not be, in every dataset that is described.

    Parameters
    ----------
    roots
        Where descriptors and the corpus lie.
    progress
        Told how many datasets are done, of how many.
    """
    found = Search()
    where: dict[str, list[Place]] = defaultdict(list)
    described = datasets(roots)
    for done, dataset in enumerate(described):
        if progress:
            progress(done, len(described))
        for case in (*dataset.cases, *dataset.development):
            digests = _digests(dataset, case, roots)
            if digests is None:
                found.unknown.append(f"{dataset.name}/{case}")
                continue
            for path, digest in digests.items():
                place = _place(dataset, case, path)
                if place is not None:
                    where[digest].append(place)
    found.images = sum(len(places) for places in where.values())
    found.datasets = sorted({place.dataset for places in where.values() for place in places})
    found.doubles = [double for places in where.values() for double in _doubles(places)]
    told = {frozenset((one.dataset, one.case) for one in double.places) for double in found.doubles}
    for double in _subjects(described, roots):
        # Two cases that hold one image are of one subject as a matter of course.
        if frozenset((one.dataset, one.case) for one in double.places) not in told:
            found.doubles.append(double)
    return found


def _subjects(described: Sequence[Dataset], roots: Roots) -> Iterator[Double]:
    """Yield the subjects that are in a test case and in a development case, once for each two datasets."""
    people: dict[tuple[str, str], dict[tuple[str, Side], Place]] = defaultdict(dict)
    for dataset in described:
        for case, source, subjects in _cases(dataset, roots):
            side: Side = "test" if case in dataset.cases else "development"
            for subject in subjects:
                place = Place(dataset.name, dataset.task, case, "", side, subject)
                people[source, subject].setdefault((dataset.name, side), place)
    for places in people.values():
        tests = [place for (_, side), place in places.items() if side == "test"]
        for other in (place for (_, side), place in places.items() if side == "development"):
            yield from (Double("subject", (one, other)) for one in tests)


def _cases(dataset: Dataset, roots: Roots) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each case with its source and its subjects; of development cases those that are in the dataset's pool."""
    for case, entry in dataset.cases.items():
        yield case, entry.source, entry.subjects
    listed = (dataset_folder(dataset.name, roots) / "pool.json").is_file()
    if dataset.development and dataset.draw is not None and listed:
        for one in candidates(pool(dataset, roots), seed=dataset.draw.seed, dataset=dataset.name):
            if one.name in dataset.development:
                yield one.name, one.source, one.subjects


def _digests(dataset: Dataset, case: str, roots: Roots) -> dict[str, str] | None:
    """Return store -> digest of a case's images; None where nobody knows them."""
    local, folder = read_record(dataset, case, roots), case_dir(roots, dataset, case)
    if folder.is_dir():
        return dict(local.contents) if local and local.contents else voxel_digests(folder)
    known = recorded(dataset, case, roots)
    if known is None or case not in known.contents:
        return None
    return dict(known.contents[case])


def _place(dataset: Dataset, case: str, path: str) -> Place | None:
    """Return where a store is; None of a mask or a label map, which several images may share."""
    role = path.removeprefix("truth/").split(".")[0]
    roles = ROLES[dataset.task]
    if role not in roles:
        return None
    subjects = dataset.cases[case].subjects if case in dataset.cases else ()
    number = roles.index(role)
    subject = subjects[min(number, len(subjects) - 1)] if subjects else ""
    return Place(dataset.name, dataset.task, case, path, "test" if case in dataset.cases else "development", subject)


def _doubles(places: list[Place]) -> Iterator[Double]:
    """Yield what is wrong about one image's places: once for each two datasets (or cases) and kind."""
    told: set[tuple[Kind, str, str]] = set()
    for one, other in combinations(places, 2):
        kind = _kind(one, other)
        if kind is None:
            continue
        names = (one.dataset, other.dataset) if kind == "twice" else (f"{one.dataset}/{one.case}", str(other))
        if (kind, *names) not in told:
            told.add((kind, *names))
            yield Double(kind, (one, other))


def _kind(one: Place, other: Place) -> Kind | None:
    if one.side != other.side:
        return "partition"
    if one.dataset != other.dataset:
        return "twice" if one.task == other.task else None
    if one.case == other.case:
        return "both-sides"
    return "two-subjects" if one.subject and other.subject and one.subject != other.subject else None
