"""The two instances of one client: the next steps of each, and the effect of an answer on it.

They keep to the SDK's duty: a commit names exactly what acknowledged, and is possible only if all
that was sent did; after a commit was sent, no abort is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from exploration.messages import (
    PARTICIPANTS,
    End,
    Ended,
    Init,
    InitDone,
    Message,
    Register,
    Write,
    Written,
)

EPOCHS = 2
"""Transactions are written in so many epochs: 0 and 1."""


class Phase(Enum):
    """Where a client stands."""

    NEW = auto()
    STARTING = auto()
    OPEN = auto()
    DOOMED = auto()
    """Something was refused: the transaction can only be aborted."""
    COMMITTING = auto()
    ABORTING = auto()
    DONE = auto()
    """Fenced, or at an outcome that it cannot know."""


@dataclass(frozen=True, slots=True)
class Client:
    """One instance."""

    instance: int
    phase: Phase = Phase.NEW
    epoch: int = -1
    sent: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    told: frozenset[tuple[int, bool]] = frozenset()
    """Epochs whose outcome it was told: whether they are committed."""


Move = tuple[str, Client, tuple[Message, ...]]
"""The name of a step, the client after it, and the messages that the client sends."""


def moves(client: Client) -> Iterator[Move]:
    """Yield the steps that a client may take of itself."""
    match client.phase:
        case Phase.NEW:
            after = replace(client, phase=Phase.STARTING)
            yield "asks for its epoch", after, (Init(client.instance),)
        case Phase.OPEN:
            if client.epoch < EPOCHS:
                yield from _writes(client)
            if client.sent and client.sent == client.acknowledged:
                yield "commits", replace(client, phase=Phase.COMMITTING), (_end(client, True),)
            if client.sent:
                yield "aborts", replace(client, phase=Phase.ABORTING), (_end(client, False),)
        case Phase.DOOMED:
            yield "aborts", replace(client, phase=Phase.ABORTING), (_end(client, False),)
        case _:
            pass


def answered(client: Client, message: Message) -> Client:
    """Return a client after an answer; the same client if the answer is late or another's."""
    match message:
        case InitDone(instance, epoch):
            if instance != client.instance or client.phase is not Phase.STARTING:
                return client
            if epoch is None:
                return replace(client, phase=Phase.DONE)
            return replace(client, phase=Phase.OPEN, epoch=epoch)
        case Written(instance, epoch, participant, taken):
            if (instance, epoch) != (client.instance, client.epoch):
                return client
            if client.phase is not Phase.OPEN or participant in client.acknowledged:
                return client
            if not taken:
                return replace(client, phase=Phase.DOOMED)
            known = (*client.acknowledged, participant)
            return replace(client, acknowledged=tuple(sorted(known)))
        case Ended():
            return _ended(client, message)
        case _:
            raise AssertionError(message)


def _writes(client: Client) -> Iterator[Move]:
    for participant in PARTICIPANTS:
        if participant not in client.sent:
            sent = tuple(sorted((*client.sent, participant)))
            registered = Register(client.epoch, participant)
            write = Write(client.instance, client.epoch, participant)
            yield f"writes to the {participant}", replace(client, sent=sent), (write, registered)


def _end(client: Client, commit: bool) -> End:
    return End(client.instance, client.epoch, commit, client.sent)


def _ended(client: Client, message: Ended) -> Client:
    if (message.instance, message.epoch) != (client.instance, client.epoch):
        return client
    asked = Phase.COMMITTING if message.commit else Phase.ABORTING
    if client.phase is not asked:
        return client
    told = client.told
    if message.committed is not None:
        told |= {(message.epoch, message.committed)}
    if message.next_epoch is None:
        return replace(client, phase=Phase.DONE, told=told)
    return Client(client.instance, Phase.OPEN, message.next_epoch, told=told)
