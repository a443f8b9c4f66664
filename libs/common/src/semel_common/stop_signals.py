"""Which signals ask a process to end in order: Ctrl-C, ``kill``, and a terminal that was closed."""

import signal
from collections.abc import Sequence

STOP_SIGNALS: Sequence[signal.Signals] = tuple(
    each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")
)
"""Windows has no SIGHUP."""


def heeded_signals() -> Sequence[signal.Signals]:
    """Return the signals at which a service or a command ends.

    SIGHUP stays ignored in a process that ``nohup`` has started, which is to go on without its
    terminal. A shell ignores SIGINT for its jobs in the background; here it counts.
    """
    return tuple(
        each
        for each in STOP_SIGNALS
        if each.name != "SIGHUP" or signal.getsignal(each) is not signal.SIG_IGN
    )
