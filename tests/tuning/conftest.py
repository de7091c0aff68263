"""The world of three small pairs that the tests of runs have."""

from tests.runs.conftest import built, world

__all__ = ["built", "world"]
