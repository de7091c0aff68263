"""What is unusual and allowed is scored as anything else: the right value, or one line that says why not."""

from __future__ import annotations

import pytest

from fidopt import corpus, resources
from fidopt.scoring.output_submission import Outputs
from tests.scoring.made import boxes, describe, store, write_output

pytest.importorskip("konfai", reason="KonfAI is not installed")

BIG, SMALL = (slice(2, 8), slice(2, 9), slice(2, 8)), (slice(9, 12), slice(2, 6), slice(9, 13))


@pytest.mark.parametrize("order", [("2", "10"), ("10", "2")], ids=" then ".join)
def test_a_structure_has_its_value_whatever_the_order_of_the_descriptors_labels(tmp_path, order):
    names = {"2": "liver", "10": "spleen"}
    labels = {value: names[value] for value in order}
    describe(tmp_path / "share", "segmentation", labels=labels)
    truth = boxes(a=(2, *BIG), b=(10, *SMALL))
    store(tmp_path / "corpus" / "made" / "one" / "truth" / "labels.ome.zarr", truth, labels=True)
    roots = resources.roots(share=tmp_path / "share", corpus=tmp_path / "corpus", results=tmp_path / "results")
    output = write_output(tmp_path / "outputs" / "one", boxes(a=(2, *BIG[:2], slice(2, 7)), b=(10, *SMALL)), labels)
    row = Outputs(corpus.dataset("made", roots), roots).score(
        corpus.case(corpus.dataset("made", roots), "one", roots), output
    )
    assert row.error is None
    assert row.labels["dice"] == {"2": pytest.approx(10 / 11), "10": 1.0}
    assert row.labels["hd95"] == {"2": pytest.approx(1.0), "10": 0.0}
    counts = {metric: value for metric, value in row.metrics.items() if metric.startswith("structures")}
    assert counts == {"structures": 2, "structures_produced": 2, "structures_invented": 0}
