"""Defects of the SDK."""

import pytest

from aiosemel._producer.transactions.end_requests import EndTxn
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import Event
from aiosemel.errors import ApplicationRecoverableError, SemelError
from defects.defect import collector

DEFECTS, defect = collector()


@defect("commits-the-unacknowledged", "a producer commits unacknowledged sends")
def _unacknowledged(patch: pytest.MonkeyPatch) -> None:
    failed, end_commit = TransactionManager.failed, TransactionManager.end_commit

    def ignored(self: TransactionManager, error: SemelError, producer_epoch: int) -> None:
        if isinstance(error, ApplicationRecoverableError):
            failed(self, error, producer_epoch)

    def ended(self: TransactionManager) -> EndTxn | None:
        self._participants.acknowledged = dict(self._participants.sent)
        return end_commit(self)

    patch.setattr(TransactionManager, "failed", ignored)
    patch.setattr(TransactionManager, "end_commit", ended)


@defect("abort-after-commit", "a producer whose commit was not answered takes it for aborted")
def _abort_after_commit(patch: pytest.MonkeyPatch) -> None:
    commit_failed = TransactionManager.commit_failed

    def aborted(self: TransactionManager, error: SemelError) -> SemelError | None:
        if "outcome" in error.details:
            return commit_failed(self, error)
        self.error = error
        self._move(Event.ABORTABLE)
        self._end_sent = False
        return self._lost(error)

    patch.setattr(TransactionManager, "commit_failed", aborted)
