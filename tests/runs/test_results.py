from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from fidopt import resources, results
from fidopt.descriptors.base import parse
from fidopt.descriptors.rows import Failure, Rows
from fidopt.errors import DescriptorError, UsageError
from fidopt.results import Line

DIGEST = "sha256:" + "ab" * 32
EXAMPLE = {
    "schema": 1, "method": "demons", "dataset": "lung_ct", "machine": "host", "checksums": DIGEST,
    "rows": {"case01": {
        "metrics": {"tre": 1.5, "tre_p95": 3.1, "rtre": 0.004, "sdlogj": 0.05, "folds": 0.0},
        "labels": {"dice": {"1": 0.98}}, "time_s": 3.2, "peak_ram_mib": 144, "peak_gpu_mib": None, "threads": 2,
        "method_version": "1", "fidopt_version": "0.1.0", "date": "2026-11-30",
    }},
}  # fmt: skip


@pytest.fixture
def line(tmp_path):
    return Line(tmp_path, "host", "demons", "lung_ct")


def test_the_published_example_is_read_and_written_back_alike():
    rows = parse(Rows, json.dumps(EXAMPLE), where="rows")
    assert json.loads(results.dump_rows(rows)) == EXAMPLE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "schema"),
        ({"method": "de mons"}, "a method's name, or METHOD@VARIANT"),
        ({"checksums": "abc"}, "sha256"),
        ({"extra": 1}, "unknown key"),
        ({"rows": {"a": EXAMPLE["rows"]["case01"] | {"date": "yesterday"}}}, "a day like"),
        ({"rows": {"a": EXAMPLE["rows"]["case01"] | {"metrics": {"tre": None}}}}, "must say why"),
        ({"rows": {"a": EXAMPLE["rows"]["case01"] | {"error": {"stage": "luck", "reason": "none"}}}}, "'setup'"),
    ],
)
def test_a_damaged_file_of_rows_is_refused_with_its_key(change, said):
    with pytest.raises(DescriptorError, match=said):
        parse(Rows, json.dumps(EXAMPLE | change), where="rows")


def test_rows_are_merged_and_bytes_are_stable(line):
    first = results.new_row({"tre": 1.25}, time_s=1.23456, peak_ram_mib=3, threads=1, method_version="1")
    second = results.new_row({"tre": 2.0}, error=Failure(stage="run", reason="no", log_tail="end"))
    results.add_row(line, "b", first, checksums=DIGEST)
    results.add_row(line, "a", second, checksums=DIGEST)
    other = Line(line.results / "again", line.machine, line.method, line.dataset)
    results.add_row(other, "a", second, checksums=DIGEST)
    results.add_row(other, "b", first, checksums=DIGEST)
    assert line.rows.read_bytes() == other.rows.read_bytes()
    document = json.loads(line.rows.read_text())
    assert list(document["rows"]) == ["a", "b"]
    assert document["rows"]["b"]["time_s"] == 1.235
    assert "error" not in document["rows"]["b"]
    assert document["rows"]["a"]["error"] == {"stage": "run", "reason": "no", "log_tail": "end"}


def test_two_processes_that_write_at_once_lose_no_row(line):
    code = (
        "import sys; from pathlib import Path; from fidopt import results\n"
        "line = results.Line(Path(sys.argv[1]), 'host', 'demons', 'lung_ct')\n"
        "for n in range(20):\n"
        f"    results.add_row(line, f'{{sys.argv[2]}}{{n}}', results.new_row({{'tre': 1.0}}), checksums='{DIGEST}')\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(line.results), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(results.read_rows(line.rows).rows) == 60
    assert [p.name for p in line.rows.parent.iterdir() if p.name not in {line.rows.name, ".lock"}] == []


def test_rows_on_other_files_are_set_aside_by_one_process_at_a_time(line):
    results.add_row(line, "a", results.new_row({"tre": 1.0}), checksums=DIGEST)
    other = "sha256:" + "cd" * 32
    with ThreadPoolExecutor(1) as pool:
        with results._alone(line.rows.parent):
            waiting = pool.submit(results.set_aside_others, line, checksums=other)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
            assert line.rows.exists()
        assert waiting.result(timeout=30) is None
    assert [path.name for path in line.rows.parent.glob("*.json*")] == [f"lung_ct.{'ab' * 4}.json.old"]


def test_no_rows_are_none_and_not_an_error(line):
    assert results.read_rows(line.rows) is None


def test_a_file_in_the_wrong_folder_is_noticed(world):
    results.machine_here(world.roots, name="host")
    line = Line(world.roots.results, "host", "demons", "toy")
    results.add_row(line, "one", results.new_row({"tre": 1.0}), checksums=DIGEST)
    line.rows.parent.rename(line.rows.parents[1] / "elastix")
    with pytest.raises(UsageError, match="not those of its folder"):
        list(results.lines(world.roots, "toy"))


def test_an_unknown_host_gets_a_machine_once(world):
    first = results.machine_here(world.roots, say=world.say)
    assert resources.hostname() in first.hostnames
    assert first.cores >= 1
    assert first.threads >= 1
    (said,) = world.told
    assert said.startswith(f"the host {resources.hostname()} is new here: ")
    assert results.machine_here(world.roots, say=world.say) == first
    assert len(world.told) == 1


def test_the_machine_that_lists_the_host_is_taken(world, monkeypatch):
    results.machine_here(world.roots, name="lab")
    monkeypatch.setattr(resources, "hostname", lambda: "other host")
    assert results.machine_here(world.roots).name == "other-host"
    monkeypatch.undo()
    assert results.machine_here(world.roots).name == "lab"


def test_a_name_goes_ahead_of_the_list_and_the_variable(world, monkeypatch):
    results.machine_here(world.roots, name="lab")
    monkeypatch.setenv("FIDOPT_MACHINE", "node")
    node = results.machine_here(world.roots)
    assert (node.name, node.hostnames) == ("node", ())
    assert results.machine_here(world.roots, name="lab").name == "lab"


def test_two_hosts_of_one_name_get_two_folders(world, monkeypatch):
    monkeypatch.setattr(resources, "hostname", lambda: "a.b")
    results.machine_here(world.roots)
    monkeypatch.setattr(resources, "hostname", lambda: "a.b!")
    assert results.machine_here(world.roots).name == "a.b-2"


def test_a_machine_name_that_leads_elsewhere_is_refused(world):
    with pytest.raises(UsageError, match="--machine"):
        results.machine_here(world.roots, name="../../x")


def test_the_digest_follows_the_built_files_and_the_recorded_ones(world, own_corpus):
    dataset = own_corpus()
    before = results.corpus_digest(dataset, world.roots)
    assert results.corpus_digest(dataset, world.roots) == before
    assert results.recorded_digest(dataset, world.roots) is None
    built = {name: results.case_digests(world.case(name).folder) for name in dataset.cases}
    assert set(built["one"]) >= {"fixed.ome.zarr", "moving.ome.zarr", "truth/fixed_labels.ome.zarr"}
    record = world.share / "datasets" / "toy" / "checksums.json"
    record.write_text(json.dumps({"fidopt": "0", "cases": built}))
    assert results.recorded_digest(dataset, world.roots) == before
    world.case("two").folder.rename(world.roots.corpus / "gone")
    assert results.corpus_digest(dataset, world.roots) == before
    (world.case("one").fixed / "zarr.json").write_text("{}")
    assert results.corpus_digest(dataset, world.roots) != before


def test_rows_of_another_line_are_not_taken_up(world):
    line = Line(world.roots.results, "m", "demons", "toy")
    results.add_row(line, "one", results.new_row({"tre": 1.0}), checksums="sha256:" + "0" * 64)
    moved = Line(world.roots.results, "m", "elastix", "toy")
    moved.rows.parent.mkdir()
    moved.rows.write_text(line.rows.read_text())
    with pytest.raises(UsageError, match="are not those of its folder"):
        results.add_row(moved, "two", results.new_row({"tre": 2.0}), checksums="sha256:" + "0" * 64)
    assert moved.rows.read_text() == line.rows.read_text()
