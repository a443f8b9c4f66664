"""The end of a service process that has failed: it comes, whatever stands in its way."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import structlog

from semel_common.errors import (
    InconsistentClusterIdError,
    KafkaStorageError,
    StaleClaimEpochError,
)
from semel_runtime.config import ServiceSettings
from semel_runtime.journal import Journal, JournalUnknownError
from semel_runtime.journal.engine_choice import is_folder
from semel_runtime.journal_refusal import refuse, refuse_journal

log = structlog.get_logger(__name__)

EXIT_FAILURE = 1
END_MAX_S = 10.0
"""How long a service whose journal or work has failed may take to end in order."""


def end_by_force(after_s: float = END_MAX_S) -> None:
    """End this process in some seconds, if it has not ended by itself by then.

    A thread sees to it. The event loop, a thread that writes to a disk that hangs, and a lock that
    another thread holds, cannot keep it from that.
    """
    timer = threading.Timer(after_s, os._exit, (EXIT_FAILURE,))
    timer.daemon = True
    timer.start()


async def refuse_if_told(
    results: Sequence[BaseException | bool | None], settings: ServiceSettings, journal: Journal
) -> None:
    """Keep a journal that the controller has refused from ever being opened again."""
    for error in _errors(results):
        # Without a claim epoch, it is the controller that is old: this journal is fine.
        if isinstance(error, StaleClaimEpochError) and "claim_epoch" in error.details:
            if is_folder(settings.journal_location):
                refuse(Path(settings.journal_location), error.message)
            else:
                await refuse_journal(journal, error.message)


def report(results: Sequence[BaseException | bool | None]) -> None:
    """Log why background work ended; everything else was cancelled."""
    for error in _errors(results):
        # Of a failed journal the runner has said in one line why, and `failed` is set.
        if not isinstance(error, KafkaStorageError | JournalUnknownError):
            refused = isinstance(error, InconsistentClusterIdError | StaleClaimEpochError)
            log.error(
                "background work failed",
                error=str(error),
                exc_info=None
                if refused
                else error,  # What is for the operator is all in its words.
            )


def _errors(results: Iterable[BaseException | bool | None]) -> Iterator[Exception]:
    for result in results:
        if isinstance(result, BaseExceptionGroup):
            yield from _errors(result.exceptions)
        elif isinstance(result, Exception):
            yield result
