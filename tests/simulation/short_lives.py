"""Members that live for less than a heartbeat interval: none of them is ever heard a second time.

They come when the faults are over, so none of them is killed, and no session has to end first. From
then on no partition may be without a member for longer than an interval and the life of a member.
"""

from random import Random

from aiosemel import ConsumerOptions, TopicPartition
from aiosemel.errors import RetriableError
from semel_runtime.testing.virtual_time import after
from simulation.recorded import RecordedClient
from simulation.workloads import TOPICS, Around
from simulation.world import SimulatedLoop

TOPIC = "b"
PROCESSES = 4
"""More than there are partitions: an idle member gets the partitions of a member that leaves."""
GROUP = "short-lived"
STARTED_S = 5.0
"""From the end of the faults: services start again first, within 1.5 s.

And the first metadata of a client may name a process that stands still, while its successor has not
registered. The first member lives for 0.9 s then, and its goodbye waits for 1.5 s, the time-out of
a request; after that, the client asks again.

A goodbye is tried for 5 s. A group that moves is away for a shorter time: an instance that has
taken it over asks for metadata again after 1 s, the time-out of a request, if no newer ones come.
"""
WATCHED_S = 6.0
UNHELD_MAX_S = 3.0
"""A heartbeat interval is 1 s, and so is a life; the rest is for messages on their way."""


class Holders:
    """Which partitions have a member, and since when the others have none."""

    def __init__(self, loop: SimulatedLoop, around: Around, failures: list[str]) -> None:
        self._loop, self._around, self._failures = loop, around, failures
        self._calm_at: float | None = None
        self._unheld_since: dict[TopicPartition, float] = {}
        self._held: dict[TopicPartition, str] = {}

    @property
    def done(self) -> bool:
        """Whether partitions were watched for long enough."""
        return self._calm_s() > STARTED_S + WATCHED_S

    def hold(self, member: str, partitions: frozenset[TopicPartition]) -> None:
        """Note that a member has these partitions, and no others."""
        for each in [p for p, holder in self._held.items() if holder == member]:
            del self._held[each]
        self._held |= dict.fromkeys(partitions, member)
        self.look()

    def look(self) -> None:
        """Note, and complain of, partitions without a member."""
        now, watched_s = self._loop.time(), self._calm_s() - STARTED_S
        for place in (TopicPartition(TOPIC, at) for at in range(TOPICS[TOPIC])):
            since = self._unheld_since.setdefault(place, now)
            if place in self._held:
                self._unheld_since[place] = now
            elif (unheld_s := min(now - since, watched_s)) > UNHELD_MAX_S:
                self._failures.append(f"{place} had no member of {GROUP} for {unheld_s:.1f} s")

    def _calm_s(self) -> float:
        if self._calm_at is None and self._around.calm:
            self._calm_at = self._loop.time()
        return 0.0 if self._calm_at is None else self._loop.time() - self._calm_at


class ShortLives:
    """A process that makes one member after the other."""

    def __init__(self, holders: Holders, around: Around) -> None:
        self._holders, self._around = holders, around

    @property
    def done(self) -> bool:
        """Whether partitions were watched for long enough."""
        return self._holders.done

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Join, poll for a moment, leave, and join again."""
        while not self._around.calm:
            await after(100)
        while not self.done:
            try:
                await self._live(client, random)
            except RetriableError:
                await after(50)

    async def _live(self, client: RecordedClient, random: Random) -> None:
        member = f"{client.process}/{random.getrandbits(32):08x}"
        options = ConsumerOptions(fetch_max_wait_ms=100)
        consumer = client.client.consumer(GROUP, options)
        consumer.subscribe([TOPIC])
        try:
            for _ in range(random.randint(3, 6)):
                await consumer.poll(500, timeout_ms=150)
                self._holders.hold(member, consumer.assignment())
        finally:
            self._holders.hold(member, frozenset())
            await consumer.close()
