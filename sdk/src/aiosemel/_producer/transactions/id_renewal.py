"""When a transactional producer takes its transactional id again, before its next transaction.

Theory of operation. A coordinator forgets a transactional id that had no transaction for
``transactional_id_expiration_ms``, and participants refuse a producer token whose secret is gone.
Either would abort the next transaction. So the producer calls InitProducerId again between two
transactions: after half of that time without one, and after such a refusal. The coordinator
refuses that call if another producer has taken over, so a successor is never fenced.
"""

import asyncio

from aiosemel._shared.error_causes import causes
from aiosemel.errors import InvalidProducerTokenError, SemelError


class Renewal:
    """The age of one producer's identity, as far as the producer knows it."""

    def __init__(self) -> None:
        self._expiration_ms = 0
        self._producer_epoch = -1
        self._heard_at = 0.0
        self._begun_at = 0.0
        self._is_refused = False
        self.keeps_prepared = False
        """Whether there may be prepared transactions, which are not to abort."""

    def identified(self, expiration_ms: int) -> None:
        """Take the answer of InitProducerId; 0: nothing is known of an expiration."""
        self._expiration_ms = expiration_ms
        self._heard_at = self._begun_at = _now()
        self._is_refused = False

    def failed(self, error: SemelError) -> None:
        """Note why a transaction has failed."""
        if any(isinstance(cause, InvalidProducerTokenError) for cause in causes(error)):
            self._is_refused = True

    def is_due(self, producer_epoch: int) -> bool:
        """Whether to call InitProducerId before the next transaction, which has this epoch.

        Each end of a transaction brings another epoch, after the transaction was begun.
        """
        if producer_epoch != self._producer_epoch:
            self._producer_epoch = producer_epoch
            self._heard_at = max(self._heard_at, self._begun_at)
        idle_ms = (_now() - self._heard_at) * 1000
        return self._is_refused or 0 < self._expiration_ms <= 2 * idle_ms

    def begun(self) -> None:
        """Note that a transaction begins."""
        self._begun_at = _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
