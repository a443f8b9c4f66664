"""Two-phase commit with a system outside: prepare, ask it, complete; by any process alive then.

The outside system is a register that keeps the first decision for each name. It stands for a
database with a unique key, and survives its clients. A producer that prepares a transaction writes
"commit"; a producer that takes over writes "abort", and obeys the first decision. In the end, both
sides must say the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from aiosemel import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    PreparedTransactionId,
    ProducerOptions,
    RetriableError,
    TransactionAbortedError,
)
from semel_runtime.testing.virtual_time import after
from simulation.recorded import RecordedClient, RecordedProducer
from simulation.workloads import TOPICS, Surroundings, insist

_ABORT_SHARE = 0.15
_DAWDLE_SHARE = 0.25
_AHEAD_SHARE = 0.3


@dataclass(slots=True)
class Register:
    """The outside system."""

    commits: dict[tuple[int, int], bool] = field(default_factory=dict)
    """By producer id and epoch; the first word counts."""

    def decide(self, prepared: PreparedTransactionId, *, commit: bool) -> bool:
        """Write a decision, unless there is one; return the decision in the register."""
        return self.commits.setdefault((prepared.producer_id, prepared.producer_epoch), commit)

    def disagreements(self, decided: Mapping[tuple[int, int], bool]) -> list[str]:
        """Return where the cluster has decided otherwise."""
        return [
            f"the outside says that {key} {'commits' if commit else 'aborts'}, the cluster says"
            f" {decided.get(key)}"
            for key, commit in sorted(self.commits.items())
            if decided.get(key) is not commit
        ]


class TwoPhase:
    """One instance of an application that keeps the cluster and the register in step."""

    def __init__(
        self, transactional_id: str, quota: int, register: Register, around: Surroundings
    ) -> None:
        self._transactional_id = transactional_id
        self._left = quota
        self._register = register
        self._around = around
        self._places = [(topic, at) for topic in ("a", "b") for at in range(TOPICS[topic])]

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Make producers, one after the other has come to its end."""
        while not self.done:
            options = ProducerOptions(
                request_timeout_ms=1_000,
                delivery_timeout_ms=3_000,
                max_block_ms=4_000,
                transaction_timeout_ms=random.choice((1_000, 4_000)),
                registration_delay_ms=random.choice((0, 50)),
            )
            producer = client.transactional_producer(self._transactional_id, options)
            try:
                await self._take_over(producer)
                await self._use(producer, random, client.process)
            except ApplicationRecoverableError as error:
                self._around.trace("producer ended", client.process, type(error).__name__)
                await producer.close()
                await after(random.uniform(0, 1_500))
            else:
                await producer.close()

    async def _take_over(self, producer: RecordedProducer) -> None:
        """Complete the prepared transactions of the predecessor, as the register says."""
        for prepared in await insist(partial(producer.init_transactions, keep_prepared=True)):
            commit = self._register.decide(prepared, commit=False)
            await insist(partial(producer.complete_prepared, prepared, commit=commit))

    async def _use(self, producer: RecordedProducer, random: Random, name: str) -> None:
        while not self.done:
            await self._one(producer, random, name)

    async def _one(self, producer: RecordedProducer, random: Random, name: str) -> None:
        around = self._around
        around.transactions += 1
        try:
            prepared = await self._prepare(producer, random, name)
        except TransactionAbortedError as error:
            if isinstance(error.__cause__, ApplicationRecoverableError):
                raise error.__cause__ from None
            await insist(producer.abort)
            return
        except (AbortableTransactionError, RetriableError):
            await insist(producer.abort)
            return
        around.trace("prepared", name, prepared)
        if random.random() < _DAWDLE_SHARE and not around.calm:
            await after(random.uniform(0, 3_000))
        commit = self._register.decide(prepared, commit=random.random() >= _ABORT_SHARE)
        if random.random() < _AHEAD_SHARE:
            await self._go_ahead(producer, random, name)
        await insist(partial(producer.complete_prepared, prepared, commit=commit))
        self._left -= 1
        around.trace("completed", name, prepared, commit)

    async def _prepare(
        self, producer: RecordedProducer, random: Random, name: str
    ) -> PreparedTransactionId:
        await producer.begin_transaction()
        for _ in range(random.randint(0, 3)):
            topic, partition = random.choice(self._places)
            value = f"{name}-{next(self._around.records.numbers)}"
            await producer.send(topic, value.encode(), partition=partition)
        return await producer.prepare()

    async def _go_ahead(self, producer: RecordedProducer, random: Random, name: str) -> None:
        """Do another transaction while the one before is still prepared."""
        try:
            await producer.begin_transaction()
            topic, partition = random.choice(self._places)
            value = f"{name}-{next(self._around.records.numbers)}"
            await producer.send(topic, value.encode(), partition=partition)
        finally:
            await insist(producer.abort)
