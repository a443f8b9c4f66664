"""Joint transactions in a simulation: owners and tasks, as Spark's drivers and task attempts.

The board stands for the state that such a system keeps itself: the next version, the open tasks,
and the receipts of finished tasks. Owners and workers are killed at any step; two owners may be at
work at once, as when a driver is replaced that is still alive. A task that takes too long is given
to another worker too, and the owner commits the receipt that comes first.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from semel_checker.names import Joint, Outcome, Partition, Writer
from semel_checker.operations import (
    EndJoint,
    Joined,
    JointEnded,
    JoinTransaction,
    Send,
    SentRecord,
)

from aiosemel import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    Delivery,
    JointHandle,
    JointOutcome,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    JointReceipt,
    JointTransaction,
    JointWriter,
    ProducerOptions,
    RetriableError,
    SemelError,
    TransactionAbortedError,
)
from semel_runtime.testing.virtual_time import after
from simulation.recorded import RecordedClient, settle_send
from simulation.workloads import TOPICS, Around

OPTIONS = ProducerOptions(
    request_timeout_ms=1_000,
    delivery_timeout_ms=4_000,
    max_block_ms=4_000,
    registration_delay_ms=50,
)
OWNER = "job"
INTRUDER = "another job"
"""Uses the same id, by mistake."""
TASKS = 3
_ABORT_SHARE = 0.1
_DUEL_SHARE = 0.25
_DAWDLE_SHARE = 0.2
_KEPT_ALIVE_SHARE = 0.5
_INTRUDER_SHARE = 0.15
_PATIENCE_MS = 1_500
"""How long an owner waits for a task before it gives it to another worker too."""
_GIVE_UP_MS = 12_000


class Board(Protocol):
    """The state that owners and workers of one id share."""

    transactional_id: str

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        ...

    @property
    def done(self) -> int:
        """The last version that is committed, as far as the owners have noted."""
        ...

    def note_done(self, version: int) -> None:
        """Note that a version is committed."""
        ...

    def ask_for(self, handle: str, tasks: Sequence[int]) -> None:
        """Give tasks of a handle to the workers that come first."""
        ...

    def take(self, random: Random) -> tuple[str, int] | None:
        """Take a handle and a task; None: there is nothing to do."""
        ...

    def hand_in(self, handle: str, task: int, receipt: str) -> None:
        """Keep a receipt, unless another worker was faster."""
        ...

    def receipts(self, handle: str) -> Mapping[int, str]:
        """Return the first receipt of each task that was handed in."""
        ...


@dataclass(slots=True)
class SharedBoard:
    """A board in the memory of a simulation. Implements ``Board``."""

    transactional_id: str
    versions: int
    """How many are to be committed."""
    done: int = 0
    _open: list[tuple[str, int]] = field(default_factory=list)
    _receipts: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """See ``Board``."""
        return self.done >= self.versions

    def note_done(self, version: int) -> None:
        """See ``Board``."""
        self.done = max(self.done, version)

    def ask_for(self, handle: str, tasks: Sequence[int]) -> None:
        """See ``Board``."""
        self._open += [(handle, task) for task in tasks]

    def take(self, random: Random) -> tuple[str, int] | None:
        """See ``Board``."""
        return self._open.pop(random.randrange(len(self._open))) if self._open else None

    def hand_in(self, handle: str, task: int, receipt: str) -> None:
        """See ``Board``."""
        self._receipts.setdefault(handle, {}).setdefault(task, receipt)

    def receipts(self, handle: str) -> Mapping[int, str]:
        """See ``Board``."""
        return self._receipts.get(handle, {})


class JointOwner:
    """Commits one version after the other."""

    def __init__(self, board: Board, around: Around) -> None:
        self._board = board
        self._around = around

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._board.is_finished

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Commit the remaining versions; every attempt is a run of its own."""
        while not self.done:
            version = self._board.done + 1
            self._around.transactions += 1
            number = next(client.records.numbers)
            handle = JointHandle(
                transactional_id=self._board.transactional_id,
                txn_version=version,
                owner=OWNER,
                run=f"{client.process}/{number}",
                transaction_timeout_ms=random.choice((2_000, 8_000)),
            )
            try:
                committed = await self._attempt(client, handle, random)
            except (AbortableTransactionError, ApplicationRecoverableError, RetriableError):
                committed = False
            self._around.trace("joint version", client.process, version, committed)
            if committed:
                self._board.note_done(version)
            if self._board.done and random.random() < _INTRUDER_SHARE:
                await self._intrude(client)
            # An owner that has won goes on; an owner that has lost waits for a while.
            await after(random.uniform(0, 500 if committed else 3_000))

    async def _intrude(self, client: RecordedClient) -> None:
        handle = JointHandle(
            transactional_id=self._board.transactional_id,
            txn_version=1,
            owner=INTRUDER,
            run=f"{client.process}/{next(client.records.numbers)}",
        )
        writer = RecordedJointWriter(client, handle)
        with suppress(JointOwnerMismatchError, RetriableError):
            await writer.join()
        await writer.close()

    async def _attempt(self, client: RecordedClient, handle: JointHandle, random: Random) -> bool:
        joint = RecordedJoint(client, handle)
        text = handle.to_json()
        async with AsyncExitStack() as stack:
            if random.random() < _KEPT_ALIVE_SHARE:
                await stack.enter_async_context(joint.inner)
            self._board.ask_for(text, range(TASKS))
            if not await self._all_handed_in(text, handle.txn_version, random):
                await joint.abort()
                return False
            if random.random() < _ABORT_SHARE and not self._around.calm:
                await joint.abort()
                return False
            if random.random() < _DAWDLE_SHARE and not self._around.calm:
                # Long enough to time out; then a late writer opens the version a second time.
                await after(random.uniform(1_000, 4_000))
                self._board.ask_for(text, [random.randrange(TASKS)])
                await after(random.uniform(0, 300))
            found = self._board.receipts(text)
            receipts = [JointReceipt.from_json(found[task]) for task in range(TASKS)]
            return await joint.commit(receipts)

    async def _all_handed_in(self, text: str, version: int, random: Random) -> bool:
        for _ in range(_GIVE_UP_MS // _PATIENCE_MS):
            for _ in range(_PATIENCE_MS // 50):
                if not self._missing(text):
                    return True
                await after(50)
            if self._board.done >= version and random.random() > _DUEL_SHARE:
                return False  # Another owner was faster.
            self._board.ask_for(text, self._missing(text))
        return False

    def _missing(self, text: str) -> list[int]:
        found = self._board.receipts(text)
        return [task for task in range(TASKS) if task not in found]


class JointWorker:
    """Does tasks: joins, writes, hands in a receipt."""

    def __init__(self, board: Board, topics: Sequence[str], around: Around) -> None:
        self._board = board
        self._around = around
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._board.is_finished

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Take a task, and do it, until all versions are committed."""
        while not self.done:
            taken = self._board.take(random)
            if taken is None:
                await after(random.uniform(20, 100))
                continue
            text, task = taken
            try:
                receipt = await self._do(client, JointHandle.from_json(text), random)
            except (
                AbortableTransactionError,
                ApplicationRecoverableError,
                RetriableError,
            ) as error:
                self._around.trace("task failed", client.process, type(error).__name__)
                continue
            self._board.hand_in(text, task, receipt)

    async def _do(self, client: RecordedClient, handle: JointHandle, random: Random) -> str:
        writer = RecordedJointWriter(client, handle)
        try:
            if await writer.join():
                for _ in range(random.randint(0, 3)):
                    topic, partition = random.choice(self._places)
                    await writer.send(Partition(topic, partition))
                    if random.random() < 0.1 and not self._around.calm:
                        await after(random.uniform(0, 3_000))
            return (await writer.finish()).to_json()
        finally:
            await writer.close()


class RecordedJoint:
    """An owner's transaction that writes down its ends."""

    def __init__(self, client: RecordedClient, handle: JointHandle) -> None:
        self.inner: JointTransaction = client.client.joint_transaction_of(handle, OPTIONS)
        self._client = client
        self._joint = _name(handle)

    async def commit(self, receipts: Sequence[JointReceipt]) -> bool:
        """Commit; asks again until the outcome is known. Returns whether the version is."""
        writers = tuple(
            Writer(receipt.producer_id, receipt.producer_epoch)
            for receipt in receipts
            if not receipt.already_committed
        )
        records = self._client.records
        operation = EndJoint(joint=self._joint, owner=OWNER, commit=True, writers=writers)
        op = records.recorder.invoked(self._client.process, operation)
        while True:
            try:
                outcome = await self.inner.commit(receipts)
            except JointOutcomeUnknownError:
                await after(100)
            except TransactionAbortedError:
                self._returned(op, Outcome.FAILED)
                raise
            else:
                already = outcome is JointOutcome.ALREADY_COMMITTED
                self._returned(op, Outcome.OK, JointEnded(already_committed=already))
                return True

    async def abort(self) -> None:
        """Abort."""
        operation = EndJoint(joint=self._joint, owner=OWNER, commit=False, writers=())
        op = self._client.records.recorder.invoked(self._client.process, operation)
        try:
            outcome = await self.inner.abort()
        except SemelError:
            self._returned(op, Outcome.UNKNOWN)
            raise
        already = outcome is JointOutcome.ALREADY_COMMITTED
        self._returned(op, Outcome.OK, JointEnded(already_committed=already))

    def _returned(self, op: int, outcome: Outcome, answer: JointEnded | None = None) -> None:
        self._client.records.recorder.returned(self._client.process, op, outcome, answer)


class RecordedJointWriter:
    """A writer that records its joins and its sends."""

    def __init__(self, client: RecordedClient, handle: JointHandle) -> None:
        self._inner: JointWriter = client.client.join(handle, options=OPTIONS)
        self._client = client
        self._sends: list[tuple[int, Delivery]] = []
        self._writer = Writer(0, 0)

    async def join(self) -> bool:
        """Join; returns whether there is something to write."""
        recorder, process = self._client.records.recorder, self._client.process
        operation = JoinTransaction(
            joint=_name(self._inner.handle),
            owner=self._inner.handle.owner,
            writer_name=self._inner._name,
        )
        op = recorder.invoked(process, operation)
        try:
            await self._inner.join()
        except SemelError as error:
            recorder.returned(process, op, Outcome.UNKNOWN, error=type(error).__name__)
            raise
        if self._inner.already_committed:
            answer = Joined(writer=None, already_committed=True)
        else:
            manager = self._inner._transactions.manager
            self._writer = Writer(manager.producer_id, manager.producer_epoch)
            answer = Joined(writer=self._writer)
        recorder.returned(process, op, Outcome.OK, answer)
        return not self._inner.already_committed

    async def send(self, place: Partition) -> None:
        """Send one record."""
        records = self._client.records
        value = f"{self._client.process}-{next(records.numbers)}"
        operation = Send(writer=self._writer, partition=place, records=(SentRecord(value),))
        op = records.recorder.invoked(self._client.process, operation)
        delivery = await self._inner.send(place.topic, value.encode(), partition=place.partition)
        self._sends.append((op, delivery))

    async def finish(self) -> JointReceipt:
        """Wait until all is stored."""
        return await self._inner.finish()

    async def close(self) -> None:
        """Stop."""
        for op, delivery in self._sends:
            settle_send(self._client.records.recorder, self._client.process, op, delivery)
        await self._inner.close()


def _name(handle: JointHandle) -> Joint:
    return Joint(handle.transactional_id, handle.txn_version, handle.run)
