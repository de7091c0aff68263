"""Worker processes of this machine give what this process's threads give, and need nothing but the engine."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
import pytest

from blocks.execute import write_image
from blocks.grid import Grid
from blocks.image import image_of, open_image
from fidopt.cli import main
from fidopt.cluster import connect, deployment, run
from fidopt.errors import UsageError
from fidopt.images.digest import digest

SHIPPED = Path(__file__).parents[2] / "deploy" / "local.yml"
#: A meta path entry that refuses fidopt, in every interpreter that starts with its folder on the path.
REFUSING = """
import sys
class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "fidopt":
            raise ImportError("a worker asked for fidopt")
sys.meta_path.insert(0, Refusing)
"""


def test_the_file_that_comes_along_gives_the_same_store(work, tmp_path, capsys):
    mine = tmp_path / "local.yml"
    # Any free port: another cluster may run on this machine while the tests do.
    mine.write_text(SHIPPED.read_text().replace("127.0.0.1:8787", "127.0.0.1:0"))
    assert main([*work.words("local.ome.zarr"), "--cluster", str(mine), "--memory", "1GiB", "--dashboard"]) == 0
    assert "dashboard: http://127.0.0.1:" in capsys.readouterr().err
    assert work.digest("local.ome.zarr") == work.expected


def test_nothing_listens_beyond_loopback():
    with run(deployment(str(SHIPPED)).model_copy(update={"workers": 1, "dashboard": "127.0.0.1:0"})):
        me = psutil.Process()
        addresses = {c.laddr.ip for p in (me, *me.children()) for c in p.net_connections() if c.status == "LISTEN"}
    assert addresses == {"127.0.0.1"}


def test_workers_need_only_the_engine(work, tmp_path, monkeypatch):
    import dask

    (tmp_path / "sitecustomize.py").write_text(REFUSING)
    (tmp_path / "scan.mha").write_bytes(_metaimage())
    before = {"PYTHONPATH": str(tmp_path)}
    # The nanny sets it in this process too, and leaves it there; what was before comes back after the test.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    inputs = work.folder
    field = ["field", str(inputs / "bend.tfm"), "u.ome.zarr", "--like", str(inputs / "fixed.ome.zarr")]
    convert = ["convert", str(inputs / "moving.ome.zarr"), "copy.ome.zarr"]
    convert_file = ["convert", "scan.mha", "scan.ome.zarr"]
    pyramid = ["pyramid", "copy.ome.zarr"]
    with dask.config.set({"distributed.nanny.pre-spawn-environ": before}), connect(dashboard=True, workers=1) as client:
        with pytest.raises(ImportError, match="a worker asked for fidopt"):
            client.submit(importlib.import_module, "fidopt").result()
        for words in (field, convert, convert_file, pyramid, work.words("engine.ome.zarr")):
            assert main([*words, "--cluster", client.scheduler.address]) == 0
    assert work.digest("engine.ome.zarr") == work.expected
    assert digest("copy.ome.zarr") == work.digest("moving.ome.zarr")
    main([*field[:2], "embedded.ome.zarr", *field[3:]])
    assert digest("u.ome.zarr") == digest("embedded.ome.zarr")


def _metaimage():
    head = "NDims = 3\nDimSize = 4 3 2\nElementType = MET_UCHAR\nElementSpacing = 1 1 1\nElementDataFile = LOCAL\n"
    return ("ObjectType = Image\n" + head).encode() + bytes(range(24))


def test_one_key_encrypts_all_and_lets_nobody_else_in(work, certificates, tmp_path):
    from distributed import Client

    file = tmp_path / "tls.yml"
    file.write_text(f"kind: local\nworkers: 1\nmemory: 1GiB\ntls: {certificates}\n")
    with run(deployment(str(file))) as running:
        assert running.address.startswith("tls://127.0.0.1:")
        with pytest.raises((OSError, TypeError, ValueError)):
            Client(running.address, timeout="2s", set_as_default=False)
        with pytest.raises(UsageError, match="no Dask scheduler answers at tls://"), connect(running.address):
            pass
        there = tmp_path / "there.yml"
        there.write_text(f"kind: address\naddress: {running.address}\ntls: {certificates}\n")
        assert main([*work.words("tls.ome.zarr"), "--cluster", str(there)]) == 0
    assert work.digest("tls.ome.zarr") == work.expected


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_workers_of_one_gibibyte_warp_what_is_larger_and_stay_below_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shape = (640, 1024, 1024)
    lazy = da.zeros(shape, chunks=(256, 256, 256), dtype=np.uint16) + da.arange(1024, chunks=256, dtype=np.uint16)
    write_image("moving.ome.zarr", image_of(lazy, Grid.of(shape)), levels=False)
    assert open_image("moving.ome.zarr").nbytes > 1 << 30
    _turn("turn.tfm", shape)
    words = ["warp", "moving.ome.zarr", "turn.tfm", "out.ome.zarr", "--like", "moving.ome.zarr"]
    file = Path("two.yml")
    file.write_text("kind: local\nworkers: 2\nmemory: 1GiB\n")
    with run(deployment(str(file))) as running:
        before = running.client.run(_peak)
        assert main([*words, "--cluster", running.address]) == 0
        after = running.client.run(_peak)
    # The same workers, none of them begun again: what they held at most is what they say.
    assert set(before) == set(after)
    peaks = sorted(peak >> 20 for peak in after.values())
    assert peaks[-1] < 1024, peaks


def _turn(path, shape):
    import SimpleITK as sitk  # noqa: N813 - the package's customary name

    middle = [n / 2 for n in shape[::-1]]
    sitk.WriteTransform(sitk.Euler3DTransform(middle, 0.1, 0.2, 0.5, (1, 2, 3)), path)


def _peak():
    from pathlib import Path

    line = next(text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith("VmHWM"))
    return int(line.split()[1]) << 10
