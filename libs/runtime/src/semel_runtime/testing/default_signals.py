"""Tests of signals do not depend on which signals their caller ignores, as ``nohup`` does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from semel_common.stop_signals import STOP_SIGNALS


@contextmanager
def default_signals() -> Iterator[None]:
    """Let signals do what they do by default, here and in processes that are started meanwhile."""
    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        is_interrupt = number is signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
