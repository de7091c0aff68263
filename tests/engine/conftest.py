"""An image of several shards as it is stored whole, and a writer that stops after some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from blocks.execute import write_image
from tests.interrupting import Writer, some_image
from tests.killing import files


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    """Return what stops every writer of the test."""
    return Writer(monkeypatch)


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """Return the files of the image's store."""
    write_image(tmp_path / "whole.ome.zarr", some_image())
    return files(tmp_path / "whole.ome.zarr")
