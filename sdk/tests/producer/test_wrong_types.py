"""A call refuses a name, number or offset of a wrong type."""

from collections.abc import Awaitable, Callable
from dataclasses import Field, fields
from enum import StrEnum

import pytest
from producer_harness import GROUP, FakeCluster, begun, open_client

from aiosemel import (
    ClientOptions,
    ConsumerOptions,
    PoolOptions,
    Producer,
    ProducerOptions,
    RelayOptions,
    Security,
    SemelClient,
    TopicPartition,
    TransformOptions,
)
from aiosemel.errors import InvalidConfigError


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("partition", "kind"), [("1", "str"), (1.0, "float"), (True, "bool"), (b"1", "bytes")]
)
@pytest.mark.parametrize("method", ["send", "send_columns", "append"])
async def test_a_partition_is_a_number(
    fake: FakeCluster,
    partition: int,
    kind: str,
    method: str,
    *,
    is_known: bool,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        if is_known:
            await producer.send("t", b"v", partition=1)
        calls: dict[str, Callable[[Producer], Awaitable[object]]] = {
            "send": lambda it: it.send("t", b"v", partition=partition),
            "send_columns": lambda it: it.send_columns("t", [b"v"], partition=partition),
            "append": lambda it: it.append(
                "t", [b"v"], partition=partition, expected_base_offset=0
            ),
        }
        with pytest.raises(TypeError, match=f"partition must be int, not {kind}"):
            await calls[method](producer)


@pytest.mark.parametrize("given", [None, 5, b"id"])
async def test_ids_and_addresses_are_text(
    fake: FakeCluster,
    given: str,
) -> None:
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"bootstrap must be str, not {kind}"):
        SemelClient(given)
    async with open_client(fake) as client:
        with pytest.raises(TypeError, match=f"transactional_id must be str, not {kind}"):
            client.transactional_producer(given)
        if given is not None:
            with pytest.raises(TypeError, match=f"group_id must be str, not {kind}"):
                client.consumer(given)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"orders": 1}, "a partition is named by"),
        ({("orders", 0): 1.5}, "offset must be int or OffsetAndMetadata, not float"),
        ({("orders", 0): "1"}, "offset must be int or OffsetAndMetadata, not str"),
    ],
)
async def test_offsets_are_numbers_by_partition(
    fake: FakeCluster,
    offsets: dict[TopicPartition, int],
    message: str,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        with pytest.raises(TypeError, match=message):
            await producer.send_offsets(offsets, GROUP)
        with pytest.raises(TypeError, match=message):
            await client.consumer("g").commit(offsets)
        await producer.send("t", b"v", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"v"]


@pytest.mark.parametrize("given", [1.5, True, "1", None], ids=repr)
@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ClientOptions, "request_timeout_ms"),
        (ProducerOptions, "max_in_flight"),
        (ConsumerOptions, "fetch_max_wait_ms"),
        (TransformOptions, "max_records"),
    ],
)
def test_an_option_that_counts_is_a_whole_number(
    options: Callable[..., object], name: str, given: object
) -> None:
    with pytest.raises(InvalidConfigError, match=f"{name} is {given!r}, not a whole number"):
        options(**{name: given})


OPTIONS = (
    ClientOptions,
    ConsumerOptions,
    PoolOptions,
    ProducerOptions,
    RelayOptions,
    TransformOptions,
)
OF_TYPE: dict[object, list[object]] = {
    int: [None, "1", b"1", 1.0, True, -1, 1 << 63, 1 << 20_000, "1" * 10_000, [], {}],
    bool: [None, "false", "true", 0, 1, 1.0, [], {}, "x" * 10_000],
    str: [None, b"text", 1, True, "\ud800", [], {}],
    str | None: [b"text", 1, True, "\ud800", [], {}],
}
"""What no option of a type may be."""
ENUMERATED: list[object] = [None, "x", b"x", 1, True, [], {}, "x" * 10_000, 1 << 20_000]


def wrong_values(option: Field[object]) -> list[object]:
    is_enumeration = isinstance(option.type, type) and issubclass(option.type, StrEnum)
    return ENUMERATED if is_enumeration else OF_TYPE[option.type]


@pytest.mark.parametrize("options", OPTIONS)
def test_an_option_is_of_its_type_and_in_its_bounds(options: type[ProducerOptions]) -> None:
    checked = [option for option in fields(options) if option.name != "skip_batches"]
    for option in checked:
        for wrong in wrong_values(option):
            with pytest.raises(InvalidConfigError) as raised:
                options(**{option.name: wrong})  # type: ignore[arg-type]  # wrong on purpose
            assert option.name in raised.value.message
            assert len(raised.value.message) < 300


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ClientOptions, "request_timeout_ms"),
        (ProducerOptions, "request_timeout_ms"),
        (ProducerOptions, "transaction_timeout_ms"),
        (ConsumerOptions, "fetch_min_bytes"),
        (ConsumerOptions, "fetch_max_wait_ms"),
        (ConsumerOptions, "max_poll_interval_ms"),
    ],
)
def test_a_number_that_no_request_can_carry_is_refused(
    options: type[ProducerOptions], name: str
) -> None:
    with pytest.raises(InvalidConfigError, match=f"{name} is 2147483648, more than 2147483647"):
        options(**{name: 1 << 31})  # type: ignore[arg-type]  # all are whole numbers


@pytest.mark.parametrize("wrong", ["false", 0, None])
def test_whether_there_is_tls_is_true_or_false(wrong: bool) -> None:
    with pytest.raises(InvalidConfigError, match="neither True nor False"):
        Security(tls=wrong)
