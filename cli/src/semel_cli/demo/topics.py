"""What the parts of the demo agree on: topics, partitions, and who works in which group."""

from dataclasses import dataclass

from semel_local.layout import Role, Settings

PARTITIONS = 4
INSTANCES = 2
"""How many instances of the application share the orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Orders in, income out, by one kind of application."""

    title: str
    name: str
    """Of its instances, before their number."""
    module: str
    """The application, as `python -m` runs it."""
    orders: str
    income: str
    group: str
    loaded_first: float
    """The part of the orders that is there at the beginning; the rest comes in between kills."""


EXACTLY_ONCE = Job(
    title="Transactions: exactly once",
    name="pizza-app",
    module="semel_cli.demo.application",
    orders="pizza-orders",
    income="pizza-income",
    group="pizza-income",
    loaded_first=0.85,
)
PLAIN = Job(
    title="Plain sends, offsets committed afterwards",
    name="plain-app",
    module="semel_cli.demo.baseline",
    orders="pizza-orders-plain",
    income="pizza-income-plain",
    group="pizza-income-plain",
    loaded_first=0.0,
)

SETTINGS: Settings = {
    # An instance that is killed comes back as another member: its partitions wait for this long.
    Role.GROUP_COORDINATOR: {
        "group_consumer_session_timeout_ms": 2_000,
        "group_consumer_heartbeat_interval_ms": 400,
    }
}
"""The settings of the demo's cluster that are not defaults."""
