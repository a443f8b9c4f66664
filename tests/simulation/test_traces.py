"""A simulation leaves the process as it was."""

import logging
import signal

import pytest
import structlog

from simulation.run import simulate


@pytest.mark.slow
def test_a_simulation_keeps_neither_logs_nor_signals() -> None:
    sdk = logging.getLogger("aiosemel")
    before = (structlog.get_config()["wrapper_class"], sdk.level, signal.getsignal(signal.SIGTERM))
    for seed in range(3):
        simulate(seed)
    after = (structlog.get_config()["wrapper_class"], sdk.level, signal.getsignal(signal.SIGTERM))
    assert after == before
