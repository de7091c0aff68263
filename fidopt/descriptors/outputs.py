"""labels.json: the names of the values in the label map that a segmentation method wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fidopt.descriptors.base import Table, Text
from fidopt.descriptors.contradictions import check


class OutputNames(Table[Text]):
    """Value in a label map -> the structure's name."""

    @check
    def _from_one(self) -> Iterator[str]:
        for value in self.root:
            if value == "0":
                yield "0: is the background, which has no name here; leave it out"
            elif not re.fullmatch(r"[1-9][0-9]*", value):
                yield f'{value}: must be a label\'s value, from 1; a line reads \'"1": "liver"\''
