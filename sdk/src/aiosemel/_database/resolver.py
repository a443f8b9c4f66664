"""Completes transactions that a process left prepared, even if the process never comes back.

Every process that uses the database runs one. The database says which transactional ids it decides,
so no process takes a transaction of another application for its own.
"""

import asyncio

from aiosemel._admin.admin import Admin
from aiosemel._database.completions import complete
from aiosemel._database.decisions import Decisions
from aiosemel._shared.background_task import Background
from aiosemel._shared.context import Context
from aiosemel.errors import SemelError
from aiosemel.types.descriptions import TransactionState
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel_common.library_log import get_logger

_log = get_logger(__name__)

INTERVAL_S = 10.0
OLD_MS = 30_000
"""A transaction that is prepared for longer has no process any more that completes it."""


class Resolver:
    """Resolves the transactions of one database, again and again."""

    def __init__(self, context: Context, decisions: Decisions) -> None:
        self._context = context
        self._decisions = decisions
        self._background = Background(self._run, lambda: None)

    def start(self) -> None:
        """Run until ``close``."""
        if not self._background.running:
            self._background.start(self._context.spawn, "resolver of prepared transactions")

    async def close(self) -> None:
        """Stop."""
        await self._background.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            try:
                await resolve(Admin(self._context.cluster), self._decisions, older_than_ms=OLD_MS)
            except SemelError as error:
                _log.warning("resolving prepared transactions again: %s", error)
            except Exception:  # noqa: BLE001 - without a resolver, readers wait for dead processes
                _log.exception("resolving prepared transactions again")


async def resolve(
    admin: Admin, decisions: Decisions, *, older_than_ms: int
) -> dict[PreparedTransactionId, bool]:
    """Complete the transactions that were prepared, as the database has decided.

    Returns each with whether it committed. A transaction without a decision aborts.
    """
    own = await decisions.registered()
    listed = await admin.list_transactions(
        states=[TransactionState.PREPARED], running_longer_than_ms=older_than_ms
    )
    prepared = {
        PreparedTransactionId(
            transactional_id=entry.transactional_id,
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
        )
        for entry in listed
        if entry.transactional_id in own
    }
    resolved = {}
    for each in prepared:
        resolved[each] = await decisions.is_committed(each)
        outcome = "committing" if resolved[each] else "aborting"
        _log.info("%s was left prepared: %s", each, outcome)
        await complete(admin, each, commit=resolved[each])
    await _forget_old(admin, decisions)
    return resolved


async def _forget_old(admin: Admin, decisions: Decisions) -> None:
    """Forget old decisions that the cluster has carried out.

    A transaction is prepared before its decision can be read. So a transaction that is not prepared
    after this read never needs the decision again, whatever the clocks say.
    """
    old = await decisions.old()
    if old:
        waiting = {str(each) for each in await admin.list_prepared_transactions()}
        await decisions.forget_any(old - waiting)
