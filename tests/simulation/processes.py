"""The services of a simulated cluster: real apps, each a process with a disk and a supervisor.

A service that ends, for whatever reason, is started again by its supervisor, as Kubernetes does,
on the same disk. Everything but the controller may come back at another address.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import assert_never

from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.errors import SemelError, StaleClaimEpochError
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_coordinator.controller.loops.presence import ControllerPresence
from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_local.layout import CONTROLLER, Role, ServiceName, service_settings
from semel_runtime.app import App, Environment
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.journal.contract import Journal
from semel_runtime.journal.journal_errors import JournalError, JournalOpenError
from semel_runtime.runner import RunnerOptions
from semel_runtime.testing.virtual_time import LoopClock
from simulation.deletion import RETENTION_CHECK_INTERVAL_MS
from simulation.disk import Copy, Observer, SimulatedVolume, Unwatched
from simulation.durable import EXPIRATION_MS
from simulation.group_moves import GROUP_PARTITIONS
from simulation.invariants import Invariants
from simulation.log_moves import TRANSACTION_LOG_PARTITIONS
from simulation.network import Network, Trace
from simulation.opening import open_journal
from simulation.world import Life, SimulatedLoop

COUNTS = {Role.COORDINATOR: 2, Role.BROKER: 3, Role.GROUP_COORDINATOR: 2}
BOOTSTRAP = "coordinator-0:1"
NAMES = tuple(ServiceName(role, number) for role in Role for number in range(COUNTS[role]))
START_MS = 1_700_000_000_000
RESTART_MS = (100, 1_500)

_COMMON: dict[str, str | int] = {
    "request_timeout_ms": 1_000,
    "registration_interval_ms": 2_000,
    "metadata_max_wait_ms": 5_000,
}
# Longer than a batch is under way: clients try to deliver it for 6 s, and the network may repeat it
# up to 4 s later. Time to settle after a start or a jump of the clock is as long. With less (7.5 s,
# and a producer that tries for 20 s), 120 seeds find nothing, but brokers rely on more: see
# docs/internals/adr/0027-expiry-of-fences.md. The defect `forgets-after-a-jump` trusts a clock
# after a jump.
_EXPIRY: dict[str, str | int] = {
    "producer_id_expiration_ms": EXPIRATION_MS,
    "producer_id_expiration_check_interval_ms": 500,
}
_BY_ROLE: dict[Role, dict[str, str | int]] = {
    Role.COORDINATOR: {
        "transaction_state_log_num_partitions": TRANSACTION_LOG_PARTITIONS,
        "offsets_topic_num_partitions": GROUP_PARTITIONS,
        "instance_live_ms": 5_000,
        "transactional_id_expiration_ms": 3_000,
        "transaction_remove_expired_transaction_cleanup_interval_ms": 500,
    },
    Role.BROKER: {
        "transaction_inquiry_interval_ms": 2_000,
        "log_cleaner_backoff_ms": 150,
        "log_retention_check_interval_ms": RETENTION_CHECK_INTERVAL_MS,
        **_EXPIRY,
    },
    Role.GROUP_COORDINATOR: {
        "group_consumer_session_timeout_ms": 6_000,
        "group_consumer_heartbeat_interval_ms": 1_000,
        "group_consumer_reconciling_heartbeat_interval_ms": 200,
        "transaction_inquiry_interval_ms": 2_000,
        **_EXPIRY,
    },
}


@dataclass(slots=True)
class Machinery:
    """The state that all services of a simulation share."""

    loop: SimulatedLoop
    network: Network
    random: Random
    invariants: Invariants
    trace: Trace
    failures: list[str]
    numbers: "count[int]" = field(default_factory=lambda: count(1))


class Service:
    """One service over all its lives."""

    def __init__(self, name: ServiceName, machinery: Machinery) -> None:
        self.name = name
        self._machinery = machinery
        self._settings = _settings(name)
        self.volume = SimulatedVolume(Random(machinery.random.getrandbits(64)))
        self.life: Life | None = None
        """The life that counts; an older one may linger."""
        self._lingering: list[tuple[Life, str]] = []
        """Older lives, and their addresses: a loss of power ends them, too."""
        self.app: App | None = None
        self.ready = False
        self.skew_ms = 0
        self._clock = LoopClock(START_MS)
        self._port = 1
        self._address = f"{name}:1"
        self.wanted = True
        """Whether the supervisor starts it again."""
        self.older: SimulatedVolume | None = None
        """An older copy of its volume, put in the place of the right one."""

    # -- faults ----------------------------------------------------------------------------------

    def start(self, *, move: bool = False) -> None:
        """Begin a life, in place of the one before: that must be dead, or lingers as a twin."""
        machinery = self._machinery
        if self.life is not None and self.life.alive:
            self._lingering.append((self.life, self._address))
        if move and self.name != CONTROLLER:
            self._port += 1
            self._address = f"{self.name}:{self._port}"
        self.ready = False
        life = self.life = Life(str(self.name), next(machinery.numbers))
        machinery.trace("start", str(self.name), self._address)
        task = machinery.loop.start(life, self._live(life, self._address))
        task.add_done_callback(lambda _: self._ended(life))

    def put_back(self, copy: Copy) -> None:
        """Kill it, and put an older copy in the place of its volume until that is refused."""
        self.kill()
        self.older = SimulatedVolume.of(copy, Random(self._machinery.random.getrandbits(64)))
        self.restart_later(move=False)

    def kill(self) -> None:
        """End its life at once; the records that it has not synced may be lost."""
        life = self.life
        if life is None or not life.alive:
            return
        self._end(life, self._address)
        if (self.older or self.volume).end_process(life) and self.older is None:
            while self._lingering:
                self._end(*self._lingering.pop())
        self.ready = False

    def _end(self, life: Life, address: str) -> None:
        self._machinery.loop.end_life(life)
        self._machinery.network.leave(address, life)
        self._machinery.invariants.died(life)

    def pause(self) -> None:
        """Let it stand still."""
        if self.life is not None:
            self._machinery.loop.stop_life(self.life)
            if watch := self._machinery.invariants.compaction_of(self.life):
                watch.paused()

    def resume(self) -> None:
        """Let it go on."""
        if self.life is not None:
            self._machinery.loop.resume_life(self.life)

    def set_clock(self, skew_ms: int) -> None:
        """Let its clock on the wall go before or after."""
        before_ms, self._clock.start_ms = self._clock.start_ms, START_MS + skew_ms
        if self.life and (watch := self._machinery.invariants.compaction_of(self.life)):
            watch.clock_set(self._clock.start_ms - before_ms)

    def restart_later(self, *, move: bool) -> None:
        """Let the supervisor start it again in a while."""
        delay_s = self._machinery.random.uniform(*RESTART_MS) / 1000
        self._machinery.loop.call_later(delay_s, self._restart, self.life, move)

    def _restart(self, before: Life | None, move: bool) -> None:
        if self.wanted and self.life is before:
            self.start(move=move)

    # -- its life --------------------------------------------------------------------------------

    async def _live(self, life: Life, address: str) -> None:
        machinery = self._machinery
        if self.older is not None:
            await self._live_on(self.older, life, address)
            return
        watch = machinery.invariants.watch(self.name, life, self.volume, self._clock)
        try:
            async with await self._open(self.volume, watch) as journal:
                app = self._build(self._environment(journal, address))
                watch.observe(app)
                async with app:
                    watch.loaded()
                    self.app = app
                    machinery.network.serve(address, str(self.name), life, app.handlers)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(app.run())
                        group.create_task(_fail_with(app))
                        await app.ready.wait()
                        self.ready = self.life is life
        except JournalOpenError as error:
            machinery.failures.append(f"{self.name} is refused its journal: {error}")
        except (JournalError, SemelError, _JournalFailedError) as error:
            machinery.trace("ended", str(self.name), repr(error))
        except BaseExceptionGroup as group_error:
            _, other = group_error.split((JournalError, SemelError, _JournalFailedError))
            machinery.trace("ended", str(self.name), repr(group_error))
            if other is not None:
                machinery.failures.append(f"{self.name} broke down: {other!r}")
        except Exception as error:
            machinery.failures.append(f"{self.name} broke down: {error!r}")
            raise

    async def _live_on(self, older: SimulatedVolume, life: Life, address: str) -> None:
        """Live on an older copy: the cluster must refuse it before it serves anything."""
        machinery = self._machinery
        try:
            journal = await self._open(older, Unwatched())
            async with journal, self._build(self._environment(journal, address)) as app:
                machinery.network.serve(address, str(self.name), life, app.handlers)
                async with asyncio.TaskGroup() as group:
                    group.create_task(app.run())
                    await admitted(app)
                    machinery.failures.append(f"{self.name} was let in on an older copy")
        except BaseExceptionGroup as error:
            refused, _ = error.split(StaleClaimEpochError)
            machinery.trace("ended", str(self.name), repr(error))
            if refused is not None:
                machinery.trace("refused", str(self.name))
                self.older = None
        except Exception as error:
            machinery.failures.append(f"{self.name} broke down on an older copy: {error!r}")
            raise

    async def _open(self, volume: SimulatedVolume, observer: Observer) -> Journal:
        random = Random(self._machinery.random.getrandbits(64))
        service = f"semel-{self.name}"
        return await open_journal(volume, service=service, observer=observer, random=random)

    def _environment(self, journal: Journal, address: str) -> Environment:
        machinery = self._machinery
        return Environment(
            journal=journal,
            connector=machinery.network.connector(str(self.name)),
            clock=self._clock,
            random=Random(machinery.random.getrandbits(64)),
            listeners=(_listener(address),),
            runner=RunnerOptions(snapshot_records_min=machinery.random.choice((40, 150, 600))),
        )

    def _ended(self, life: Life) -> None:
        """Take a process that ended by itself from the world, and start it again."""
        machinery = self._machinery
        machinery.loop.end_life(life)
        machinery.network.leave(self._address, life)
        machinery.invariants.died(life)
        if self.life is life:
            self.ready = False
            self.restart_later(move=False)

    def _build(self, environment: Environment) -> App:
        settings = self._settings
        match settings:
            case CoordinatorSettings():
                return CoordinatorApp(settings, environment)
            case BrokerSettings():
                return BrokerApp(settings, environment)
            case GroupSettings():
                return GroupApp(settings, environment)
            case _:
                assert_never(settings)


async def admitted(app: App) -> None:
    """Wait until a service would answer: a coordinator, until it may give something out.

    A controller that has waited long enough for an instance is let in as well: it cannot know.
    """
    if not isinstance(app, CoordinatorApp):
        await app.ready.wait()
        return
    assert app._parts is not None
    presence = app._parts.presence
    await presence.confirmed.wait()
    if isinstance(presence, ControllerPresence) and presence._own_volume._awaited:
        await asyncio.Event().wait()


class _JournalFailedError(Exception):
    """The process must end."""


async def _fail_with(app: App) -> None:
    await app.failed.wait()
    raise _JournalFailedError


def _listener(address: str) -> Listener:
    host, _, port = address.rpartition(":")
    return Listener(name="default", host=host, port=int(port))


_made: dict[ServiceName, CoordinatorSettings | BrokerSettings | GroupSettings] = {}


def _settings(name: ServiceName) -> CoordinatorSettings | BrokerSettings | GroupSettings:
    """Make a service's settings, once for all simulations."""
    if name not in _made:
        values = {
            "data_dir": str(name),
            "controller": "" if name == CONTROLLER else BOOTSTRAP,
            **service_settings(name, COUNTS),
            **_COMMON,
            **_BY_ROLE[name.role],
        }
        match name.role:
            case Role.COORDINATOR:
                _made[name] = CoordinatorSettings.model_validate(values)
            case Role.BROKER:
                _made[name] = BrokerSettings.model_validate(values)
            case Role.GROUP_COORDINATOR:
                _made[name] = GroupSettings.model_validate(values)
    return _made[name]
