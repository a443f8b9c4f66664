"""A broker reads its logs in the background, and so finds damage that no client has met."""

from broker_service import plain, serving
from msgspec.structs import replace
from structlog.testing import capture_logs

from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


@in_virtual_time
async def test_damage_that_no_client_reads_is_found(volume: MemoryVolume) -> None:
    async with serving(
        volume, log_check_interval_ms=1_000, log_check_bytes_per_second=1 << 10
    ) as broker:
        for number in range(40):
            await broker.produce(plain(b"%d" % number * 500))
        batches = volume.content.batches[0]
        batches[20] = replace(batches[20], payload=b"")
        del batches[30]
        with capture_logs() as logs:
            await after(100_000)
    found = {log["offset"] for log in logs if log["event"] == "damage found"}
    rounds = [log["size_bytes"] for log in logs if log["event"] == "logs read for damage"]
    assert found == {20, 30}
    # Each round reads about 36 KiB in as many seconds, and waits for one more.
    assert len(rounds) in {2, 3}
    assert len(set(rounds)) == 1


@in_virtual_time
async def test_nothing_is_read_at_a_rate_of_zero(volume: MemoryVolume) -> None:
    async with serving(volume, log_check_bytes_per_second=0, log_check_interval_ms=1) as broker:
        await broker.produce(plain(b"value"))
        with capture_logs() as logs:
            await after(10_000)
    assert not [log for log in logs if log["event"] == "logs read for damage"]
