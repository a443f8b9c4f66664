"""A person who looks at a range of a log is named to the broker, once."""

from fake_cluster import FakeCluster

from aiosemel import ClientOptions, ConsumerOptions, LogRange, SemelClient
from semel.broker.v1.broker_pb2 import FetchRequest

ONE_BATCH_AT_A_TIME = ConsumerOptions(max_partition_fetch_bytes=1)


async def fetches(operator: str, reason: str) -> list[FetchRequest]:
    """Read a range of two batches; return the requests for them."""
    fake = FakeCluster(brokers=1)
    fake.create_topic("orders", 1)
    for value in (b"0", b"1"):
        fake.append("orders", 0, [value])
    log_range = LogRange(
        topic="orders", topic_id=fake.topics["orders"], partition=0, start_offset=0, end_offset=2
    )
    options = ClientOptions(default_api_timeout_ms=5_000)
    async with SemelClient("coordinator:1", connector=fake, options=options) as client:
        reader = client.read_range(log_range, ONE_BATCH_AT_A_TIME, operator=operator, reason=reason)
        found: list[bytes | None] = []
        while batches := await reader.read():
            found += [record.value for batch in batches for record in batch.records()]
    assert found == [b"0", b"1"]
    return [each for each in fake.asked("Fetch") if isinstance(each, FetchRequest)]


async def test_the_first_fetch_names_the_person() -> None:
    first, *rest = await fetches("ada", "a complaint")
    assert (first.operator.name, first.operator.reason) == ("ada", "a complaint")
    assert rest
    assert not any(each.HasField("operator") for each in rest)


async def test_a_program_names_no_person() -> None:
    assert not any(each.HasField("operator") for each in await fetches("", ""))
