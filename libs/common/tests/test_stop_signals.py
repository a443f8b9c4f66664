"""At which signals a process ends."""

import signal
from collections.abc import Iterator

import pytest

from semel_common.stop_signals import heeded_signals
from semel_runtime.testing.default_signals import default_signals


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    with default_signals():
        yield


def test_a_process_ends_at_ctrl_c_at_kill_and_with_its_terminal() -> None:
    assert set(heeded_signals()) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def test_a_process_that_nohup_has_started_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert set(heeded_signals()) == {signal.SIGINT, signal.SIGTERM}
