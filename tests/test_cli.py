from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of
from fidopt import cli, corpus, resources, results
from fidopt.errors import DescriptorError, UsageError, os_sentence

HEAVY = ("torch", "konfai", "dask", "distributed", "numba", "xarray", "zarr", "SimpleITK", "scipy", "pydantic")


def _modules_after(words: list[str]) -> set[str]:
    code = f"import sys; from fidopt.cli import main; main({words!r}); print('\\n' + ' '.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in out.stdout.splitlines()[-1].split()}


def test_the_overview_loads_nothing_heavy():
    loaded = _modules_after(["--help"])
    assert not loaded & {*HEAVY, "cyclopts", "rich", "numpy"}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    assert cli.main([name, "--help"]) == 0
    page = capsys.readouterr().out
    assert f"fidopt {name}" in page
    assert "Example" in page


@pytest.mark.parametrize("name", ["convert", "info", "pyramid", "warp", "field"])
def test_an_example_stands_on_one_line_of_80_columns(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    cli.main([name, "--help"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Example")]
    assert f"fidopt {name} " in line
    assert {"warp": "--like ct.ome.zarr", "field": "--like fixed.ome.zarr"}.get(name, "") in line


@pytest.mark.parametrize("name", ["warp", "field"])
def test_the_output_has_a_row_of_its_own(name, capsys):
    cli.main([name, "--help"])
    rows = [line.strip("│ *").split("  ")[0] for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert {"TRANSFORM", "OUT"} <= set(rows)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_page_of_help_names_every_word_it_expects(name, capsys):
    cli.main([name, "--help"])
    usage = capsys.readouterr().out.splitlines()[0]
    assert usage.startswith(f"Usage: fidopt {name} ")
    assert "ARGS" not in usage


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_page_of_help_says_of_no_switch_that_it_is_off(name, capsys):
    cli.main([name, "--help"])
    assert "default: False" not in capsys.readouterr().out


def test_a_page_of_help_says_a_default_that_is_something(capsys):
    cli.main(["demo", "--help"])
    assert "[default: demo]" in capsys.readouterr().out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_page_of_help_loads_no_engine(name):
    assert not _modules_after([name, "--help"]) & {"torch", "konfai", "dask", "distributed", "numba"}


def test_the_overview_names_every_command(capsys):
    assert cli.main([]) == 0
    page = capsys.readouterr().out
    assert all(f"\n  {name}" in page for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["wrap"], "there is no command 'wrap'"),
        (["info"], "STORE"),
        (["info", "--colour", "x"], "--colour"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(words, part, capsys):
    assert cli.main(words) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert part in out.err
    assert out.err.startswith("fidopt: ")
    assert out.err.count("\n") == 1


def test_an_error_a_user_can_act_on_is_one_line_and_exit_code_two(monkeypatch, capsys):
    def refuse(_words):
        raise UsageError("no such thing")

    monkeypatch.setattr(cli, "_dispatch", refuse)
    assert cli.main(["info", "x"]) == 2
    assert capsys.readouterr().err == "fidopt: no such thing\n"


def test_an_interruption_is_exit_code_130(monkeypatch):
    def interrupt(_words):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupt)
    assert cli.main(["info", "x"]) == 130


def test_a_descriptor_error_keeps_every_problem():
    error = DescriptorError(["a: b", "c: d"])
    assert error.problems == ("a: b", "c: d")
    assert str(error) == "a: b\nc: d"


def test_what_the_system_refuses_is_one_line(tmp_path, capsys):
    (tmp_path / "corpus").write_text("a file")
    assert cli.main(["build", "retina", "--corpus", str(tmp_path / "corpus")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["..", ".", "", "/etc", "../datasets", "retina/", "retina/../retina"])
def test_a_name_is_one_folder_s_and_never_a_path(tmp_path, capsys, name):
    assert cli.main(["verify", name, "--corpus", str(tmp_path)]) == 2
    assert f"datasets: there is no {name!r} in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device", "a"), "a: no space left on device; make room on the disk, and run"),
        (OSError(30, "Read-only file system", "a"), "a: read-only file system; name another place"),
        (OSError(21, "Is a directory", "part", None, "a"), "a: is a directory; check the path"),
        (OSError("said by a library"), "said by a library"),
    ],
)
def test_what_the_system_says_becomes_a_sentence(error, sentence):
    assert os_sentence(error).startswith(sentence)


@pytest.fixture
def store(tmp_path):
    image = image_of(np.zeros((9, 9), np.uint8), Grid.of((9, 9)), unit="px")
    write_image(tmp_path / "s.ome.zarr", image)
    return tmp_path / "s.ome.zarr"


def _run_into(stdout, words, cwd):
    """Run a command with its output going somewhere; return its exit code and what it says on stderr."""
    command = [sys.executable, "-c", "import sys; from fidopt.cli import main; sys.exit(main())", *map(str, words)]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, cwd=cwd)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [["info"], ["info", "--json"], ["--help"], ["warp", "--help"]])
def test_a_reader_that_is_gone_ends_it_quietly(store, words):
    reader, writer = os.pipe()
    os.close(reader)
    words = [*words, store] if words[0] == "info" else words
    assert _run_into(writer, words, store.parent) == (130, "")
    os.close(writer)


def test_a_closed_output_is_no_fault(store):
    program = "import sys; from fidopt.cli import main; sys.exit(main())"
    words = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", program, "info", str(store)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_board_whose_reader_is_gone_ends_quietly(tmp_path):
    roots = resources.roots(results=tmp_path / "results", corpus=tmp_path / "corpus")
    line = results.Line(roots.results, results.machine_here(roots, name="m").name, "identity", "retina")
    digest = results.corpus_digest(corpus.dataset("retina", roots), roots)
    results.add_row(line, "eye1", results.new_row({"tre": 1.0}), checksums=digest)
    reader, writer = os.pipe()
    os.close(reader)
    for words in (["table"], ["table", "--csv"]):
        words += ["--results", roots.results, "--corpus", roots.corpus]
        assert _run_into(writer, words, tmp_path) == (130, "")
    os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_under_the_output_is_one_line(store):
    with Path("/dev/full").open("w") as full:
        for words in (["info", "--json", store], ["--help"]):
            code, said = _run_into(full, words, store.parent)
            assert code == 2
            assert "no space left on device" in said
            assert said.count("\n") == 1


def test_a_command_without_its_words_is_refused_in_one_sentence(capsys):
    assert cli.main(["run"]) == 2
    assert ".;" not in capsys.readouterr().err


def test_a_zero_byte_tiff_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "empty.tif").touch()
    assert cli.main(["convert", str(tmp_path / "empty.tif"), str(tmp_path / "out.ome.zarr")]) == 2
    err = capsys.readouterr().err
    assert "empty.tif" in err
    assert err.count("\n") == 1


def test_a_word_too_many_is_named(capsys):
    assert cli.main(["info", "a.ome.zarr", "b.ome.zarr"]) == 2
    assert capsys.readouterr().err == "fidopt: nothing more was expected, got 'b.ome.zarr'; see `fidopt info --help`\n"
