"""The checker finds no violation in histories of a correct system, and finds every change."""

import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from semel_checker.check import check
from semel_checker.history import Event
from semel_checker.names import Isolation, Joint, Source, Writer
from semel_checker.operations import SentRecord
from semel_checker.tests.model import (
    GROUP,
    OUT,
    P0,
    P1,
    TABLE,
    UNKNOWN,
    Cluster,
)


class Run:
    """Clients that do as chance says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster(delay=True)
        self.writers = {name: self.cluster.init(name) for name in ("a", "b", "job")}
        self.dirty = dict.fromkeys(self.writers, False)
        self.values = 0
        self.joints = 0
        self.cluster.assign("job", P0)

    def events(self, steps: int = 60) -> list[Event]:
        """Take steps, and end."""
        actions: list[Callable[[], object]] = [
            *[self.send] * 5,
            *[self.end] * 4,
            *[self.poll] * 4,
            *[self.transform] * 3,
            *[self.deliver] * 6,
            *[self.cluster.answer] * 2,
            self.plain,
            self.joint,
            self.probe,
            self.fence,
            self.ask,
            self.prepare,
            self.cluster.compact,
            self.fetch,
        ]
        for _ in range(steps):
            self.random.choice(actions)()
        return self.cluster.finish()

    def value(self) -> str:
        self.values += 1
        return f"v{self.values}"

    def name(self) -> str:
        return self.random.choice(("a", "b"))

    def send(self) -> None:
        name = self.name()
        partition = self.random.choice((P0, P1, TABLE))
        key = self.random.choice("xyz") if partition == TABLE else None
        records = [SentRecord(self.value(), key) for _ in range(self.random.randint(1, 3))]
        self.cluster.send(name, self.writers[name], partition, *records)

    def plain(self) -> None:
        writer = Writer(99, 0)
        outcome = self.random.choice(list(type(UNKNOWN)))
        self.cluster.send("plain", writer, P1, self.value(), outcome=outcome, transactional=False)

    def end(self) -> None:
        name = self.name()
        writer = self.writers[name]
        ends: list[Callable[[], Writer]] = [
            lambda: self.cluster.commit(name, writer),
            lambda: self.cluster.commit(name, writer),
            lambda: self.cluster.commit(name, writer, UNKNOWN),
            lambda: self.cluster.abort(name, writer),
            lambda: self.cluster.abort(name, writer, UNKNOWN),
            lambda: self.cluster.lose_commit(name, writer),
            lambda: self.cluster.refuse_commit(name, writer),
        ]
        self.writers[name] = self.random.choice(ends)()

    def poll(self) -> None:
        isolation = self.random.choice(list(Isolation))
        limit = self.random.choice((None, 1, 3))
        self.cluster.poll(f"reader {isolation}", P0, P1, isolation=isolation, limit=limit)

    def transform(self) -> None:
        cluster, writer = self.cluster, self.writers["job"]
        start = cluster.positions["job", P0]
        polled = cluster.poll("job", P0, transaction=writer, limit=4)
        end = cluster.positions["job", P0]
        if not polled:
            return
        for _, (offset, _) in polled:
            source = Source(GROUP, P0, offset)
            cluster.send("job", writer, OUT, SentRecord(self.value(), source=source))
        cluster.commit_offsets("job", writer, P0, start, end)
        how = self.random.randrange(4)
        if how < 2:
            outcome = UNKNOWN if how else type(UNKNOWN).OK
            self.writers["job"] = cluster.commit("job", writer, outcome)
            cluster.deliver_all()
            return
        lose = cluster.lose_commit if how == 2 else cluster.abort
        self.writers["job"] = lose("job", writer)
        cluster.deliver_all()
        cluster.assign("job", P0)

    def deliver(self) -> None:
        if self.cluster.due:
            self.cluster.deliver(self.random.randrange(len(self.cluster.due)))

    def joint(self) -> None:
        self.joints += 1
        joint = Joint("load", self.joints, "run")
        writers = [self.cluster.join(f"task {number}", joint) for number in range(3)]
        for number, writer in enumerate(writers):
            self.cluster.send(f"task {number}", writer, P1, self.value(), self.value())
        self.cluster.end_joint(joint, writers, *writers[: self.random.randint(0, 3)])

    def probe(self) -> None:
        self.cluster.probe(self.random.choice((P0, P1)))

    def fence(self) -> None:
        name = self.name()
        self.writers[name] = self.cluster.init(name)

    def ask(self) -> None:
        self.cluster.ask("operator", self.random.choice(list(self.cluster.states)))

    def prepare(self) -> None:
        name = self.name()
        writer = self.writers[name]
        self.cluster.answer(name)
        self.cluster.prepare(name, writer)
        successor = self.cluster.init(name, keep_prepared=True)
        self.cluster.complete(name, writer, successor, commit=self.random.random() < 0.5)
        self.writers[name] = successor

    def fetch(self) -> None:
        self.cluster.fetch_offsets("job", P0)


@given(seed=st.integers(min_value=0, max_value=2**32))
@settings(max_examples=150)
def test_a_correct_system_is_never_blamed(seed: int) -> None:
    assert [str(violation) for violation in check(Run(seed).events())] == []
