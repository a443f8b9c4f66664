"""Every object that sends offers the same calls."""

import inspect

import pytest

from aiosemel import JointWriter, Outputs, Producer, Transaction, TransactionalProducer
from aiosemel._producer.sends import Sends, TransactionSends

SENDS = ("send", "send_all", "send_and_wait", "send_columns", "append")


@pytest.mark.parametrize(
    "sender", [Producer, TransactionalProducer, Transaction, JointWriter, Outputs]
)
@pytest.mark.parametrize("call", SENDS)
def test_every_sender_has_the_same_sends(sender: type, call: str) -> None:
    assert inspect.signature(getattr(sender, call)) == inspect.signature(getattr(Sends, call))


@pytest.mark.parametrize("sender", [TransactionalProducer, Transaction, JointWriter])
def test_every_sender_of_a_transaction_commits_offsets(sender: type[TransactionSends]) -> None:
    own = inspect.signature(sender.send_offsets)
    assert own == inspect.signature(TransactionSends.send_offsets)


def test_no_send_is_missing_here() -> None:
    public = {name for name in dir(Sends) if not name.startswith("_")}
    assert public == set(SENDS)
