"""Which writes the runner refuses while the disk is below its reserve."""

import pytest
from runner_harness import begin, start

from semel_common.errors import ThrottlingQuotaExceededError
from semel_runtime.journal.contract import Reserve


async def test_nearly_full_disk_refuses_new_data_and_nothing_else() -> None:
    service = await start(disk_reserve_bytes=1000)
    await service.add_data("a")
    service.volume.free_bytes = 1000

    with pytest.raises(ThrottlingQuotaExceededError, match="is below its reserve") as refusal:
        await service.add_data("a")

    assert refusal.value.details["disk_reserve_bytes"] == "1000"
    assert await service.read("a") == 1
    assert await service.add("a") == 2
    assert await service.run(lambda: service.machine.add("a"), privileged=True) == 3
    assert await service.add_data("a", Reserve.HALF) == 4
    service.volume.free_bytes = 500
    with pytest.raises(ThrottlingQuotaExceededError, match="500 bytes are free"):
        await service.add_data("a", Reserve.HALF)
    service.volume.free_bytes = 0
    with pytest.raises(ThrottlingQuotaExceededError, match="is full"):
        await service.add("a")
    assert await service.run(lambda: service.machine.add("a"), privileged=True) == 5
    service.volume.free_bytes = 1001
    assert await service.add_data("a") == 6
    await service.runner.close()


async def test_queued_bytes_count_as_if_the_disk_had_them() -> None:
    service = await start(disk_reserve_bytes=1000)
    service.volume.free_bytes = 1010
    service.volume.hold()
    queued = await begin(service.add("a" * 20))

    with pytest.raises(ThrottlingQuotaExceededError, match=r"1,010 bytes are free \(\d+ of them"):
        await service.add_data("a")

    service.volume.release()
    await queued
    assert await service.add_data("a") == 1
    await service.runner.close()
