"""The sweep: ticks by the clock, in bounded steps."""

import asyncio

import pytest
from structlog.testing import capture_logs
from transactions_harness import A0, TIMEOUT_MS
from transactions_service_harness import Cluster, Coordinator, until

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.loops.timeout_sweep import abort_timed_out, sweep
from semel_coordinator.transactions.machine import TransactionLimits
from semel_coordinator.transactions.rpc.add_partitions_to_txn import PartitionAdder
from semel_coordinator.transactions.rpc.init_producer_id import ProducerIdGiver
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call


async def begin(coordinator: Coordinator, transactional_id: str) -> None:
    init = wire.InitProducerIdRequest(
        transactional_id=transactional_id,
        instance_id="one",
        init_number=1,
        transaction_timeout_ms=TIMEOUT_MS,
    )
    call = Call(origin=Origin(listener="default"))
    producer = await ProducerIdGiver(coordinator.parts).init_producer_id(init, call)
    add = wire.AddPartitionsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )
    add.topics.add(topic_id=A0.topic_id, partitions=[A0.partition])
    await PartitionAdder(coordinator.parts).add_partitions_to_txn(add, call)


async def test_everything_that_is_timed_out_is_aborted_and_logged() -> None:
    """C-095: in as many steps as it takes."""
    cluster, limits = Cluster(), TransactionLimits(step_transactions_max=2)
    async with cluster.coordinator(limits=limits, send=False) as coordinator:
        for number in range(5):
            await begin(coordinator, f"id-{number}")
        await abort_timed_out(coordinator.runner, coordinator.machine, cluster.clock)
        assert coordinator.machine.markers.pending() == []
        cluster.clock.advance(TIMEOUT_MS)
        with capture_logs() as logs:
            await abort_timed_out(coordinator.runner, coordinator.machine, cluster.clock)
        assert len(coordinator.machine.markers.pending()) == 5
        assert [log["transactional_id"] for log in logs] == [f"id-{n}" for n in range(5)]


async def test_the_sweep_runs_until_it_is_cancelled() -> None:
    cluster = Cluster()
    async with cluster.coordinator(send=False) as coordinator:
        runner, machine = coordinator.runner, coordinator.machine
        sweeping = asyncio.create_task(sweep(runner, machine, cluster.clock, interval_ms=0))
        for name in ("first", "second"):
            await begin(coordinator, name)
            cluster.clock.advance(TIMEOUT_MS)
            pending = len(machine.markers.pending())
            await until(lambda: len(machine.markers.pending()) == pending + 1)  # noqa: B023 - awaited here
        sweeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sweeping
