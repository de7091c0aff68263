"""The corpus: its datasets, their cases on disk, and the licences that let a dataset onto a leaderboard."""

from fidopt.corpus.built import Case, Pair, case, case_dir, case_names, cases
from fidopt.corpus.finding import (
    alignment_path,
    checksums,
    checksums_path,
    dataset,
    dataset_folder,
    dataset_names,
    datasets,
    filled,
)
from fidopt.corpus.licences import LICENCES, METHOD_LICENCES, Terms, data_terms, method_terms
from fidopt.corpus.lists import families, screening, structures, tracks
from fidopt.corpus.pools import Drawn, drawn, pool

__all__ = [
    "LICENCES",
    "METHOD_LICENCES",
    "Case",
    "Drawn",
    "Pair",
    "Terms",
    "alignment_path",
    "case",
    "case_dir",
    "case_names",
    "cases",
    "checksums",
    "checksums_path",
    "data_terms",
    "dataset",
    "dataset_folder",
    "dataset_names",
    "datasets",
    "drawn",
    "families",
    "filled",
    "method_terms",
    "pool",
    "screening",
    "structures",
    "tracks",
]
