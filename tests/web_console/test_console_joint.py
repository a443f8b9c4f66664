"""The pages of joint transactions: the versions of an id, and each writer of one apart."""

from web_console.console_stage import Stage, console_stage

from aiosemel import JointReceipt


async def write(stage: Stage, version: int, *partitions: int, looks: bool) -> None:
    """Write a version of "load", with one writer for each partition."""
    async with stage.client.joint_transaction("load", version, owner="loader") as joint:
        receipts: list[JointReceipt] = []
        for partition in partitions:
            async with stage.client.join(joint.handle) as writer:
                await writer.send_and_wait("orders", b"row", partition=partition)
                receipts.append(await writer.finish())
        if looks:
            await looks_at_open_writers(stage, version, *partitions)
        await joint.commit(receipts)


async def looks_at_open_writers(stage: Stage, version: int, *partitions: int) -> None:
    """Follow the link to each writer of an open version."""
    page = await stage.page("/transaction", transactional_id="load")
    assert f"Open version{version}" in page.text
    links = {each for each in page.links if f"&epoch={version - 1}&producer_id=" in each}
    assert len(links) == len(partitions)
    pages = [await stage.page(each) for each in links]
    for partition in partitions:
        (one,) = (each for each in pages if f"first write to orders-{partition}, " in each.text)
        assert "It is open" in one.text


async def test_each_writer_of_a_version_has_a_page_of_its_own() -> None:
    async with console_stage() as stage:
        await stage.client.admin().create_topic("orders", partitions=3)
        await write(stage, 1, 0, 1, looks=False)
        page = await stage.until("Committed version1", "/transaction", transactional_id="load")
        await stage.until("2 transactions committed", "/history")
        links = {each for each in page.links if "&producer_id=" in each}
        assert links == {
            each for each in (await stage.page("/history")).links if "&producer_id=" in each
        }
        assert len(links) == 2
        pages = [await stage.page(each) for each in links]
        for partition in (0, 1):
            (one,) = (each for each in pages if f"first write to orders-{partition}, " in each.text)
            assert "Yes: it is committed." in one.text
            assert "Joint version1" in one.text
            assert "semel transactions timeline load 0 --producer-id " in one.text
            assert f"orders-{1 - partition}, offset" not in one.text
        both = await stage.page("/transaction", transactional_id="load", epoch=0)
        assert "Each writer of a joint transaction has a producer id of its own." in both.text
        assert links <= set(both.links)
        await write(stage, 2, 2, 1, looks=True)
