"""A fetch of a person stands in the audit before it is answered; that of a program does not."""

import pytest
from broker_service import Broker, Coordinators, plain, serving

from semel.broker.v1 import broker_pb2 as wire
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel_common.errors import CoordinatorNotAvailableError, ThrottlingQuotaExceededError
from semel_common.wire.methods import FETCH
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import in_virtual_time
from semel_runtime.testing.volume import MemoryVolume

ADA = Operator(name="ada", reason="a complaint")


async def look(broker: Broker, operator: Operator | None) -> int:
    """Return how many batches a fetch from the beginning finds."""
    asked = wire.FetchPartition(topic="orders", fetch_offset=0)
    (result,) = (
        await broker.call(FETCH, wire.FetchRequest(partitions=[asked], operator=operator))
    ).partitions
    return len(result.batches)


@in_virtual_time
async def test_a_look_at_records_stands_in_the_audit() -> None:
    coordinators = Coordinators(MemoryNetwork())
    async with serving(MemoryVolume(), coordinators=coordinators) as broker:
        await broker.produce(plain(b"a"))
        assert await look(broker, None) == 1
        assert not coordinators.controller.audit
        assert await look(broker, ADA) == 1
        entry, end = coordinators.controller.audit
        assert (entry.action, entry.operator, entry.reason) == ("Fetch", "ada", "a complaint")
        assert entry.principal == "User:ANONYMOUS"
        assert entry.what == 'partitions { topic: "orders" }'
        assert (end.number, end.end) == (1, "DONE")


@in_virtual_time
async def test_a_look_that_was_not_noted_sees_no_record() -> None:
    coordinators = Coordinators(MemoryNetwork())
    async with serving(MemoryVolume(), coordinators=coordinators) as broker:
        await broker.produce(plain(b"a"))
        coordinators.controller.audit_refusal = ThrottlingQuotaExceededError("busy")
        with pytest.raises(CoordinatorNotAvailableError, match="did not note it in the audit"):
            await look(broker, ADA)
        assert await look(broker, None) == 1
