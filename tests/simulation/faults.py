"""Faults of a cluster and its clients, of every kind, drawn from the seed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from random import Random

from semel.coordinator.v1.moves_pb2 import AlterPartitionReassignmentsRequest
from semel_common.errors import SemelError
from semel_common.ids import InternalTopic
from semel_common.wire.methods import ALTER_PARTITION_REASSIGNMENTS
from semel_local.layout import CONTROLLER, Role
from simulation.disk import Copy
from simulation.files import SYNC_MS
from simulation.group_moves import GROUP_PARTITIONS
from simulation.log_moves import TRANSACTION_LOG_PARTITIONS
from simulation.network import CUT, FAIR, Network, Trace, Weather
from simulation.older_copies import is_known_to_be_older
from simulation.processes import BOOTSTRAP, COUNTS, Service
from simulation.workloads import Client
from simulation.world import WORLD, Life, SimulatedLoop

FAULTS = (12, 20)
"""How many there are, between these two."""


@dataclass(slots=True)
class Targets:
    """The parts of the cluster that faults hit."""

    loop: SimulatedLoop
    network: Network
    services: Sequence[Service]
    clients: Sequence[Client]
    places: Sequence[tuple[str, int]]
    """The partitions of all topics."""
    know_moves: bool
    """Whether all processes are of a release that knows of moves."""
    trace: Trace


class Faults:
    """The faults of one simulation."""

    def __init__(self, random: Random, targets: Targets) -> None:
        self._random = random
        self._targets = targets
        self._over = False
        self.injected = 0
        self._names = [str(service.name) for service in targets.services]
        self._names += [client.name for client in targets.clients]

    def schedule(self, window_s: float) -> None:
        """Let them happen some time within the window."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._kill_service, 5),
            (self._kill_many, 1),
            (self._pause_service, 4),
            (self._replace_service, 2),
            (self._stop_service, 2),
            (self._cut_links, 4),
            (self._storm, 4),
            (self._skew_clock, 2),
            (self._slow_disk, 2),
            (self._copy_volume, 3),
            (self._kill_client, 5),
            (self._pause_client, 3),
        ]
        if self._targets.know_moves:
            kinds += [
                (self._move_partitions, 6),
                (self._move_groups, 5),
                (self._move_transactions, 5),
            ]
        count = self._random.randint(*FAULTS)
        chosen = self._random.choices(
            [kind for kind, _ in kinds], [weight for _, weight in kinds], k=count
        )
        for kind in chosen:
            self._later(self._random.uniform(0, window_s), self._inject, kind)

    def end(self) -> None:
        """Undo all that lasts, and let nothing follow."""
        self._over = True
        network = self._targets.network
        network.weather.clear()
        network.general = FAIR
        for service in self._targets.services:
            self._put_right(service)
            service.resume()
            service.set_clock(0)
            service.volume.sync_ms = SYNC_MS
            service.volume.folder.at_next_sync = None
        for client in self._targets.clients:
            if client.life is not None:
                self._targets.loop.resume_life(client.life)

    def _later(self, delay_s: float, call: Callable[..., None], *args: object) -> None:
        self._targets.loop.call_later(delay_s, call, *args)

    def _inject(self, kind: Callable[[], None]) -> None:
        if not self._over:
            self.injected += 1
            kind()

    def _note(self, kind: str, *what: object) -> None:
        self._targets.trace("fault", kind, *what)

    # -- services --------------------------------------------------------------------------------

    def _service(self) -> Service:
        return self._random.choice(self._targets.services)

    def _kill_service(self) -> None:
        self._kill(self._service())

    def _kill(self, service: Service) -> None:
        move = self._random.random() < 0.3
        self._note("kill", str(service.name), move)
        if self._random.random() < 0.5:
            self._end(service, move)
            return
        # While it writes: the process dies between the beginning of a sync and its end.
        delay_s = self._random.uniform(0, service.volume.sync_ms[1]) / 1000
        end = partial(self._targets.loop.call_later, delay_s, self._end, service, move)
        service.volume.folder.at_next_sync = partial(end, context=WORLD)

    def _end(self, service: Service, move: bool) -> None:
        if self._over:
            return
        service.kill()
        service.restart_later(move=move)

    def _kill_many(self) -> None:
        services = self._targets.services
        for service in self._random.sample(services, self._random.randint(2, len(services))):
            self._kill(service)

    def _pause_service(self) -> None:
        service = self._service()
        duration_s = self._duration_s()
        self._note("pause", str(service.name), duration_s)
        service.pause()
        if service.life is not None:
            self._later(duration_s, self._targets.loop.resume_life, service.life)

    def _replace_service(self) -> None:
        """Start a second process on the disk of one that stands still, and goes on later."""
        service = self._service()
        before = service.life
        if before is None or not before.alive or service.name == CONTROLLER:
            return
        self._note("replace", str(service.name))
        service.pause()
        service.start(move=True)
        self._later(self._duration_s(), self._targets.loop.resume_life, before)

    def _stop_service(self) -> None:
        """Stop a process in order."""
        service = self._service()
        life, app = service.life, service.app
        if life is None or not life.alive or app is None or not service.ready:
            return
        self._note("stop", str(service.name))
        life.context.copy().run(app.drain)
        self._later(
            self._random.uniform(0.01, self._random.choice((0.2, 4.0))),
            self._stopped,
            service,
            life,
        )

    def _stopped(self, service: Service, life: Life) -> None:
        if service.life is life and life.alive:
            service.kill()
            service.restart_later(move=self._random.random() < 0.5)

    def _skew_clock(self) -> None:
        service = self._service()
        skew_ms = self._random.choice((-60_000, -3_000, 500, 4_000, 30_000))
        self._note("skew", str(service.name), skew_ms)
        service.set_clock(skew_ms)

    def _slow_disk(self) -> None:
        service = self._service()
        self._note("slow disk", str(service.name))
        service.volume.sync_ms = (20, self._random.choice((60, 400)))
        self._later(self._duration_s(), self._restore_disk, service)

    def _restore_disk(self, service: Service) -> None:
        service.volume.sync_ms = SYNC_MS

    def _copy_volume(self) -> None:
        """Copy a volume, and put the copy back later: of a running service, or a stopped one."""
        service = self._service()
        if self._random.random() < 0.4:
            self._kill(service)
        self._note("copy volume", str(service.name))
        delay_s = self._random.choice((1.0, 3.0, 6.0))
        self._later(delay_s, self._put_back, service, service.volume.copy())

    def _put_back(self, service: Service, copy: Copy) -> None:
        services = self._targets.services
        if self._over or any(each.older is not None for each in services):
            return
        if not is_known_to_be_older(copy, service, services):
            return
        self._note("put back", str(service.name))
        service.put_back(copy)

    def _put_right(self, service: Service) -> None:
        """Put the right volume back, if the older one has not been refused yet."""
        if service.older is not None:
            service.kill()
            service.older = None
            service.restart_later(move=False)

    # -- the network -----------------------------------------------------------------------------

    def _cut_links(self) -> None:
        """Cut some links of one process, to or from it or both."""
        one = self._random.choice(self._names[:7] if self._random.random() < 0.7 else self._names)
        others = [name for name in self._names if name != one]
        others = self._random.sample(others, self._random.choice((1, 3, len(others))))
        direction = self._random.choice(("to", "from", "both"))
        links = [(one, other) for other in others] if direction != "to" else []
        if direction != "from":
            links += [(other, one) for other in others]
        self._note("cut", direction, one, *others)
        self._targets.network.weather.update(dict.fromkeys(links, CUT))
        self._later(self._duration_s(), self._mend, links)

    def _mend(self, links: Sequence[tuple[str, str]]) -> None:
        for link in links:
            self._targets.network.weather.pop(link, None)

    def _storm(self) -> None:
        """Let any message be late, lost or repeated."""
        weather = Weather(
            delay_ms=(0.1, self._random.choice((1.0, 20.0, 150.0))),
            slow=self._random.choice((0.0, 0.05, 0.2)),
            slow_ms=(50.0, self._random.choice((400.0, 3_000.0))),
            lost=self._random.choice((0.0, 0.02, 0.1)),
            repeated=self._random.choice((0.0, 0.1, 0.3)),
        )
        self._note("storm", weather)
        self._targets.network.general = weather
        self._later(self._duration_s(), self._clear_up, weather)

    def _clear_up(self, weather: Weather) -> None:
        if self._targets.network.general is weather:
            self._targets.network.general = FAIR

    # -- partitions ------------------------------------------------------------------------------

    def _move_partitions(self) -> None:
        """Let some partitions move to other brokers."""
        places = self._random.sample(self._targets.places, self._random.randint(1, 4))
        self._move(places, Role.BROKER)

    def _move_groups(self) -> None:
        """Let some groups move to other group coordinators."""
        partitions = self._random.sample(range(GROUP_PARTITIONS), self._random.randint(2, 4))
        places = [(InternalTopic.CONSUMER_OFFSETS.value, partition) for partition in partitions]
        self._move(places, Role.GROUP_COORDINATOR)

    def _move_transactions(self) -> None:
        """Let some transaction-log partitions move to other coordinators; the first one stays."""
        movable = range(1, TRANSACTION_LOG_PARTITIONS)
        partitions = self._random.sample(movable, self._random.randint(1, 3))
        places = [(InternalTopic.TRANSACTION_STATE.value, partition) for partition in partitions]
        self._move(places, Role.COORDINATOR)

    def _move(self, places: Sequence[tuple[str, int]], role: Role) -> None:
        """Let partitions move; change or hold that up, perhaps half-way."""
        self._send_to(places, role, 0.1)
        # A move takes some milliseconds, if nothing holds it up.
        half_way_s = self._random.uniform(0.002, self._random.choice((0.006, 0.012, 1.0)))
        if self._random.random() < 0.5:
            self._later(half_way_s, self._part, role)
        if self._random.random() < 0.6:
            later_s = self._random.choice((0, 0.001, 0.5)) * self._random.random()
            self._later(half_way_s + later_s, self._send_to, places, role, 0.6)

    def _send_to(self, places: Sequence[tuple[str, int]], role: Role, stay: float) -> None:
        """Ask for moves, or with this probability for each to be given up."""
        request = AlterPartitionReassignmentsRequest()
        for topic, partition in places:
            one = request.partitions.add(topic=topic, partition=partition)
            if self._random.random() >= stay:
                one.broker_id = self._random.randrange(COUNTS[role])
        self._note("move", *((each.topic, each.partition) for each in request.partitions))
        self._targets.loop.create_task(self._ask(request), context=WORLD.copy())

    def _part(self, role: Role) -> None:
        """Let no instance of a role reach another one for a while, nor perhaps the controller."""
        names = [f"{role}-{number}" for number in range(COUNTS[role])]
        if self._random.random() < 0.5:
            names.append(str(CONTROLLER))
        links = list(permutations(names, 2))
        self._note("part", str(role))
        self._targets.network.weather.update(dict.fromkeys(links, CUT))
        self._later(self._random.uniform(0.2, 2.0), self._mend, links)

    async def _ask(self, request: AlterPartitionReassignmentsRequest) -> None:
        controller = self._targets.network.connector("operator").connect(BOOTSTRAP)
        with suppress(SemelError):
            await controller.call(ALTER_PARTITION_REASSIGNMENTS, request, timeout_ms=1_000)

    # -- clients ---------------------------------------------------------------------------------

    def _kill_client(self) -> None:
        client = self._random.choice(self._targets.clients)
        self._note("kill client", client.name)
        client.kill()

    def _pause_client(self) -> None:
        client = self._random.choice(self._targets.clients)
        self._note("pause client", client.name)
        if client.life is not None:
            self._targets.loop.stop_life(client.life)
            self._later(self._duration_s(), self._targets.loop.resume_life, client.life)

    def _duration_s(self) -> float:
        return self._random.choice((0.2, 1.0, 3.0, 7.0)) * self._random.uniform(0.5, 1.5)
