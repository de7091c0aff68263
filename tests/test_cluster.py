from __future__ import annotations

import contextlib
import logging

import pytest

from fidopt.cluster import connect


@pytest.fixture
def busy(monkeypatch):
    """A cluster whose workers are slow to go, as on a busy machine."""

    @contextlib.contextmanager
    def slow(**_options):
        logging.getLogger("distributed.nanny").warning("worker restarted")
        yield None
        logging.getLogger("distributed.nanny").warning("still alive")

    @contextlib.contextmanager
    def client(_cluster, **_options):
        yield type("Client", (), {"dashboard_link": "http://127.0.0.1:8787/status"})

    monkeypatch.setattr("distributed.LocalCluster", slow)
    monkeypatch.setattr("distributed.Client", client)


def test_a_warning_of_work_that_is_done_is_not_printed(busy, caplog):
    logger = logging.getLogger("distributed.nanny")
    logger.addHandler(caplog.handler)
    before, said = logger.level, []
    try:
        with connect(dashboard=True, say=said.append):
            pass
    finally:
        logger.removeHandler(caplog.handler)
    messages = set(caplog.messages)
    assert said == ["dashboard: http://127.0.0.1:8787/status"]
    assert "worker restarted" in messages
    assert "still alive" not in messages
    assert logger.level == before
