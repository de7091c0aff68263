"""Ours beside the challenges' and other packages' measures, on the same inputs.

    python -m tests.parity            prints the two tables: what differs on purpose and why, and what is equal
    python -m tests.parity --write    writes them into tests/parity/README.md

from a checkout. What is not installed is named and left out; `--write` asks for all of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.parity.comparison import tables
from tests.parity.every import absent, comparisons
from tests.parity.page import PAGE, page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--write", action="store_true", help="write tests/parity/README.md")
    options = parser.parse_args()
    gone = [f"{peer.name} is not installed ({peer.where}): its figures are left out" for peer in absent()]
    sys.stderr.writelines(f"{line}\n" for line in gone)
    if gone and options.write:
        sys.stderr.write("nothing is written: the page holds everybody's figures\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="fidopt-parity-") as folder:
        found = list(comparisons(Path(folder)))
    problems = [one.problem for one in found if one.problem]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    if options.write:
        PAGE.write_text(page(found), encoding="utf-8")
    else:
        sys.stdout.write(tables(found))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
