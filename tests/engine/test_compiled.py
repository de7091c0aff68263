"""What is kept of compiled kernels is never taken for another signature nor for another source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

from blocks.kernels.compiled import DIGEST, _Files, compiled
from blocks.kernels.positions import affine_rows


def test_signatures_have_a_file_each_whoever_writes_first(tmp_path: Path):
    one, other = (_Files(str(tmp_path), "module.kernel-7.py311") for _ in range(2))
    # Both have looked before either writes: Numba's own index would give both the first number.
    assert one.load("int16") is None
    assert other.load("uint8") is None
    one.save("int16", {"code": 1})
    other.save("uint8", {"code": 2})
    for files in (one, other):
        assert files.load("int16") == {"code": 1}
        assert files.load("uint8") == {"code": 2}


def test_another_source_finds_nothing_and_clears_away_what_was_kept(tmp_path: Path):
    before = _Files(str(tmp_path), "module.kernel-7.py311", "0123")
    before.save("int16", {"code": 1})
    after = _Files(str(tmp_path), "module.kernel-7.py311", "4567")
    assert after.load("int16") is None
    after.save("int16", {"code": 2})
    assert after.load("int16") == {"code": 2}
    assert [folder.name for folder in tmp_path.iterdir()] == ["kernels-4567"]
    # A process that still runs the older source compiles once more.
    assert before.load("int16") is None


def test_a_file_cut_short_or_with_a_wrong_byte_is_compiled_again(tmp_path: Path):
    files = _Files(str(tmp_path), "module.kernel-7.py311")
    files.save("int16", {"code": bytes(1000)})
    (file,) = (tmp_path / f"kernels-{DIGEST}").iterdir()
    whole = file.read_bytes()
    assert files.load("int16") == {"code": bytes(1000)}
    for length in (0, 10, 32, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert files.load("int16") is None
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        assert files.load("int16") is None


def test_a_folder_that_can_no_longer_be_written_to_stops_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "kept"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    double = compiled(lambda x: x + x)
    assert folder.is_dir()
    shutil.rmtree(folder)
    folder.write_text("no folder")
    assert double(21) == 42
    assert double(0.5) == 1.0


def test_a_kernel_is_kept_in_the_folder_of_its_source():
    points = np.empty((2, 12))
    affine_rows(np.zeros((2, 4)), np.zeros((2, 3)), np.zeros((2, 1)), 0, 0, points)
    assert not points.any()
    kept = Path(affine_rows._cache.cache_path, f"kernels-{DIGEST}")
    assert list(kept.glob("positions.affine_rows-*.nbc"))


def test_the_second_process_loads_what_the_first_compiled(tmp_path: Path):
    (tmp_path / "doubling.py").write_text(
        "from blocks.kernels.compiled import compiled\n\n\n@compiled\ndef double(x):\n    return x + x\n\n\n"
        "print(double(21), sum(double.stats.cache_hits.values()))\n"
    )
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = [sys.executable, "doubling.py"]
    said = [subprocess.run(run, cwd=tmp_path, env=where, capture_output=True, check=True).stdout for _ in range(2)]
    assert said == [b"42 0\n", b"42 1\n"]


def test_a_process_that_may_write_nowhere_compiles_for_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    double = compiled(lambda x: x + x)
    assert double(21) == 42
    assert not sum(double.stats.cache_hits.values())
