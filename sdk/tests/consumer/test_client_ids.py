"""Members and producers carry the name of their program, and members say when they have polled."""

import re

import pytest
from consumer_harness import Member, client_of, heartbeats, pass_time, settle
from fake_cluster import FakeCluster
from producer_harness import FakeCluster as ProducersCluster
from producer_harness import open_client

from aiosemel import ClientOptions, TransactionClient
from aiosemel.errors import InvalidConfigError
from aiosemel.types.client_names import client_id_of, new_name
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest

CHANCE = "0123456789abcdef" * 2


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 4)
    return fake


@pytest.mark.parametrize(("client_id", "before"), [("", ""), ("a.b_C-3", "a.b_C-3-")])
async def test_producers_and_members_have_the_name_of_their_client_and_chance(
    fake: FakeCluster, client_id: str, before: str
) -> None:
    options = ClientOptions(client_id=client_id)
    producers = ProducersCluster()
    producers.create_topic("t")
    async with open_client(producers, options) as client:
        for transactional_id in ("one", "two"):
            await client.transactional_producer(transactional_id).init_transactions()
        await client.producer().send_and_wait("t", b"value")
    async with client_of(fake, options=options) as members:
        await settle(Member.of(members))
    names = [request.instance_id for request in producers.asked(InitProducerIdRequest)]
    names.append(heartbeats(fake)[0].member_id)
    assert len(set(names)) == 4
    pattern = re.escape(before) + "[0-9a-f]{32}"
    assert all(re.fullmatch(pattern, name) for name in names), names
    assert {client_id_of(name) for name in names} == {client_id}


@pytest.mark.parametrize("wrong", ["a" * 65, "a b", "a\n", "é", "\u202eabc", "a/b", "<b>"])
def test_a_client_id_that_could_mislead_a_reader_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"client_id is .*: up to 64 letters"):
        ClientOptions(client_id=wrong)
    assert ClientOptions(client_id="a" * 64).client_id == "a" * 64


@pytest.mark.parametrize(
    ("name", "client_id"),
    [
        (CHANCE, ""),
        (f"billing-{CHANCE}", "billing"),
        (f"a-{CHANCE}-{CHANCE}", f"a-{CHANCE}"),
        (f"line\nbreak-{CHANCE}", "line\nbreak"),
        (f"-{CHANCE}", ""),
        ("of-another-rule", ""),
        (f"billing-{CHANCE}0", ""),
        ("", ""),
    ],
)
def test_a_client_id_is_read_from_names_of_this_rule_alone(name: str, client_id: str) -> None:
    assert client_id_of(name) == client_id


@pytest.mark.parametrize(
    ("name", "principal", "address", "text"),
    [
        (new_name("billing", 7), "User:ada", "10.0.0.7", "billing as User:ada at 10.0.0.7"),
        (new_name("billing", 7), "", "", "billing"),
        (new_name("", 7), "User:ada", "10.0.0.7", "User:ada at 10.0.0.7"),
        (new_name("", 7), "", "10.0.0.7", f"{7:032x} at 10.0.0.7"),
    ],
)
def test_a_client_is_shown_by_its_name_its_principal_and_its_address(
    name: str, principal: str, address: str, text: str
) -> None:
    assert str(TransactionClient(name=name, principal=principal, address=address)) == text


async def test_heartbeats_say_how_long_ago_the_member_has_polled(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        await member.poll(20_000)
        assert heartbeats(fake)[-1].poll_age_ms == 0, "it was in a poll"
        await pass_time(30)
        ages_ms = [each.poll_age_ms for each in heartbeats(fake) if each.poll_age_ms]
    assert len(ages_ms) > 2
    assert ages_ms == sorted(set(ages_ms))
    assert 20_000 < ages_ms[-1] <= 30_000
