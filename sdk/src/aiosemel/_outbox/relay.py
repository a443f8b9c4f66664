"""The relay: sends the rows that an application wrote into its outbox, each exactly once.

Theory of operation. A batch of rows gets a version, the next number of the outbox, in one
transaction of the database; from then on its rows stay the same. The relay sends them in the joint
transaction of that version and then deletes them. Whatever crashes in between, the rows are still
there with their version, so the next relay sends the same version again: the coordinator knows
whether it has committed, and then only the deletion is left to do.

One relay at a time is in charge, by a lease in the database. The lease saves work; it does not
decide. Two relays that both believe to be in charge send the same rows with the same version, which
commits once; and the newer one's run fences the older.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from random import Random

from aiosemel._admin.admin import Admin
from aiosemel._cluster.retry import growing_pauses_ms
from aiosemel._database.table_check import check_tables
from aiosemel._joint.joint_transaction import JointTransaction
from aiosemel._joint.joint_writer import JointWriter
from aiosemel._outbox.outbox_table import Charge, OutboxRow, OutboxTable
from aiosemel._outbox.restored_outbox import charge_after_restore
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.context import Context
from aiosemel._shared.value_checks import check_name
from aiosemel._transform.failures import Fault, cause_of, fault_of
from aiosemel._transform.stop_on_signal import run_until_signal
from aiosemel.database.outbox import Outbox
from aiosemel.database.tables import OUTBOX, OUTBOX_RELAY
from aiosemel.errors import (
    DatabaseUnavailableError,
    IllegalStateError,
    InvalidConfigError,
    InvalidRequestError,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    RetriableError,
    SemelError,
    TransactionalIdNotFoundError,
)
from aiosemel.options.client_options import ProducerOptions
from aiosemel.options.relay_options import RelayOptions
from aiosemel.types.after_restore import AfterRestore
from aiosemel.types.joint_handle import JointHandle
from semel_common.library_log import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStats:
    """The counts of a relay so far."""

    versions: int = 0
    """Transactions that it has committed, or found committed."""
    records: int = 0
    """Records in them."""


class Relay:
    """Sends the records of one outbox. Made by ``SemelClient.relay``."""

    def __init__(
        self,
        context: Context,
        outbox: Outbox,
        *,
        transactional_id: str,
        after_restore: AfterRestore,
        options: RelayOptions,
        producer_options: ProducerOptions,
        handle_signals: bool,
    ) -> None:
        check_name("transactional_id", transactional_id, InvalidConfigError)
        self._context = context
        self._outbox = outbox
        self._transactional_id = transactional_id
        self._after_restore = AfterRestore(after_restore)
        self._options = options
        self._producer_options = producer_options
        self._handle_signals = handle_signals
        self._table = OutboxTable(outbox, holder=_unique(context.random))
        self._run_id = _unique(context.random)
        self._is_checked = False
        """Whether versions were compared with the cluster since this relay took charge."""
        self._failures = 0
        self._pauses: Iterator[float] | None = None
        self._stopped = Signal()
        self._stopping = False
        self._started = False
        self._stats = RelayStats()

    @property
    def stats(self) -> RelayStats:
        """The counts so far."""
        return self._stats

    def stop(self) -> None:
        """Let ``run`` end: after the transaction that is under way, if there is one."""
        self._stopping = True
        self._stopped.notify()

    def __await__(self) -> Generator[object, None, None]:
        return self.run().__await__()

    async def run(self) -> None:
        """Relay until ``stop``, or until a signal. Can be run once.

        Raises DatabaseTablesError, DatabaseBehindError if the database went back to a backup,
        JointOwnerMismatchError if another outbox uses the transactional id, and the error of a
        record that cannot be sent, with a note that names its row.
        """
        if self._started:
            raise IllegalStateError("a relay can be run once: make another")
        self._started = True
        if self._handle_signals:
            await run_until_signal(self._relay(), self._stop_at_signal)
        else:
            await self._relay()

    def _stop_at_signal(self) -> float:
        self.stop()
        return self._options.signal_grace_ms

    async def _relay(self) -> None:
        await self._check_tables()
        while not self._stopping:
            try:
                await self._step()
            except SemelError as error:
                self._is_checked = False
                await self._recover(error)
            else:
                self._failures, self._pauses = 0, None
        await self._leave()

    async def _check_tables(self) -> None:
        while not self._stopping:
            try:
                return await check_tables(self._outbox.database, (OUTBOX_RELAY, OUTBOX))
            except DatabaseUnavailableError as error:
                await self._recover(error)
        return None

    async def _recover(self, error: SemelError) -> None:
        """Wait before the next attempt; raises an error that no repetition heals."""
        self._failures += 1
        is_passing = (
            isinstance(error, JointOutcomeUnknownError)
            or fault_of(error, self._failures) is Fault.ON_THE_WAY
        )
        if not is_passing:
            raise cause_of(error)
        _log.warning("relaying %r again: %s", self._outbox.name, error)
        if self._pauses is None:
            options = self._options
            self._pauses = growing_pauses_ms(options.retry_backoff_ms, options.retry_backoff_max_ms)
        await self._stopped.wait(next(self._pauses))

    async def _leave(self) -> None:
        try:
            await self._table.leave()
        except RetriableError as error:
            _log.info("another relay waits until the lease has ended: %s", error)

    # -- in charge -------------------------------------------------------------------------------

    async def _step(self) -> None:
        """Send all that waits, if this relay is in charge, and wait for more."""
        charge = await self._take_charge()
        if charge is None:
            self._is_checked = False
            await self._stopped.wait(self._options.poll_interval_ms)
            return
        if not await self._work(charge):
            self._is_checked = False
            await self._stopped.wait(self._options.lease_ms)

    async def _take_charge(self) -> Charge | None:
        now_ms = self._context.clock.now_ms()
        charge = await self._table.take_charge(
            _unique(self._context.random), now_ms, now_ms + self._options.lease_ms
        )
        if charge is not None and not self._is_checked:
            self._run_id = _unique(self._context.random)
            charge = await self._check_restored(charge)
            self._is_checked = True
        return charge

    async def _check_restored(self, charge: Charge) -> Charge:
        """Compare the next version with the last one that the cluster has committed."""
        try:
            known = await Admin(self._context.cluster).describe_transactions(self._transactional_id)
        except TransactionalIdNotFoundError:
            return charge
        if known.joint is None or known.joint.owner != charge.owner:
            return charge  # The first transaction raises the error of another owner.
        committed = known.joint.committed_version
        if committed is None or committed < charge.next_version:
            return charge
        what = f"outbox {self._outbox.name!r} ({self._transactional_id})"
        new = charge_after_restore(
            what, charge, committed, self._after_restore, _unique(self._context.random)
        )
        if new.owner == charge.owner:
            await self._table.delete_all()
        else:
            await self._table.forget_versions()
        await self._table.set_charge(new)
        return new

    async def _work(self, charge: Charge) -> bool:
        """Send every version; returns whether this relay is still in charge."""
        for version in await self._table.versions():
            await self._send(charge, version)
        while not self._stopping:
            until_ms = self._context.clock.now_ms() + self._options.lease_ms
            claimed = await self._table.claim(
                charge.next_version, self._options.max_records, until_ms
            )
            if claimed is None:
                return False
            if not claimed:
                await self._stopped.wait(self._options.poll_interval_ms)
                return True
            await self._send(charge, charge.next_version)
            charge = replace(charge, next_version=charge.next_version + 1)
        return True

    # -- one version -----------------------------------------------------------------------------

    async def _send(self, charge: Charge, version: int) -> None:
        """Send the rows of a version, unless it is committed, and delete them."""
        rows = await self._table.rows(version)
        handle = JointHandle(
            transactional_id=self._transactional_id,
            txn_version=version,
            owner=charge.owner,
            run=self._run_id,
            reset=self._after_restore is AfterRestore.REPROCESS,
        )
        context, options = self._context, self._producer_options
        try:
            async with (
                JointTransaction(context, options, handle) as joint,
                JointWriter(context, options, handle, "relay") as writer,
            ):
                if not writer.already_committed:
                    await _send_rows(writer, rows)
                await joint.commit([await writer.finish()])
        except JointOwnerMismatchError as error:
            error.add_note(
                f"the transactional id {self._transactional_id!r} belongs to another outbox, or"
                " to this one before its database was recreated: give the relay an id of its own"
            )
            raise
        await self._table.delete(version)
        stats = self._stats
        self._stats = replace(stats, versions=stats.versions + 1, records=stats.records + len(rows))


async def _send_rows(writer: JointWriter, rows: list[OutboxRow]) -> None:
    for row in rows:
        try:
            await writer.send_all([row.record])
        except InvalidRequestError as error:
            error.add_note(f"on row {row.id} of semel_outbox, for topic {row.record.topic!r}")
            raise


def _unique(random: Random) -> str:
    return f"{random.getrandbits(128):032x}"
