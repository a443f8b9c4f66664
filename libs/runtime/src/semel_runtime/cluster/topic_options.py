"""Options of topics: Kafka's names, their defaults, and which values they may have. Pure.

Options travel as text, by their names: a client in any language can set them, and an instance that
does not know one says so, where an unknown field of a message would be passed over in silence. The
records hold the options that were set; ``topic_config`` makes values of them.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import InvalidConfigError

INT64_MAX = (1 << 63) - 1
MAX_MESSAGE_BYTES_MAX = 16 << 20
"""What a broker's own setting may be, too."""
_SHOWN_MAX = 60

Overrides: TypeAlias = tuple[tuple[str, str], ...]
"""Options that were set, each with its value, by name."""
Value: TypeAlias = "CleanupPolicy | int | float | None"


class CleanupPolicy(StrEnum):
    """The rule for old records."""

    DELETE = "delete"
    COMPACT = "compact"
    COMPACT_DELETE = "compact,delete"

    @property
    def deletes(self) -> bool:
        """Whether records go when they are old, or too many."""
        return self is not CleanupPolicy.COMPACT

    @property
    def compacts(self) -> bool:
        """Whether records go when there are newer ones of their keys."""
        return self is not CleanupPolicy.DELETE


class TopicConfig(Struct, frozen=True, kw_only=True):
    """All options of one topic; each is told in ``OPTIONS``. The defaults are written here only."""

    cleanup_policy: CleanupPolicy = CleanupPolicy.DELETE
    delete_retention_ms: int = 86_400_000
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int | None = None
    """None: as the broker is set up."""
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 16 << 20
    segment_ms: int = 3_600_000


DEFAULTS = TopicConfig()


class ConfigOption(Struct, frozen=True, kw_only=True):
    """One option: how it is called, what it does, and how its value is read."""

    name: str
    documentation: str
    read: Callable[[str, str], Value]
    """Makes a value of name and text, or raises InvalidConfigError."""

    @property
    def field(self) -> str:
        """Its name in ``TopicConfig``."""
        return self.name.replace(".", "_")

    @property
    def default(self) -> str:
        """Its default as text."""
        return as_text(getattr(DEFAULTS, self.field))


def as_text(value: Value) -> str:
    """Write a value; None (the default of the broker) is empty."""
    return "" if value is None else str(value)


@lru_cache(maxsize=4_096)
def topic_config(overrides: Overrides) -> TopicConfig:
    """Return the options of a topic; overrides were checked when they were set.

    Options that only a newer release knows are passed over.
    """
    return _checked([override for override in overrides if override[0] in _BY_NAME])


def _checked(overrides: Iterable[tuple[str, str]]) -> TopicConfig:
    values = {_option(name).field: _read(name, text) for name, text in overrides}
    config = replace(DEFAULTS, **values)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise InvalidConfigError(
            f"min.compaction.lag.ms {config.min_compaction_lag_ms} is over max.compaction.lag.ms"
            f" {config.max_compaction_lag_ms}",
            key="min.compaction.lag.ms",
            value=config.min_compaction_lag_ms,
        )
    return config


def altered(
    overrides: Overrides, *, set_: Mapping[str, str], reset: Iterable[str] = ()
) -> Overrides:
    """Return the options that are set after a change, as their values are written.

    Raises InvalidConfigError naming an option that there is none of, one that is both set and
    reset, or one whose value cannot be.
    """
    changed = dict(overrides)
    for name in reset:
        if name in set_:
            raise InvalidConfigError(f"{_shown(name)} is both set and reset", key=name)
        changed.pop(_option(name).name, None)
    changed |= {name: as_text(_read(name, text)) for name, text in set_.items()}
    result = tuple(sorted(changed.items()))
    _checked(result)
    return result


def options_named(names: Iterable[str]) -> list[ConfigOption]:
    """Return the options of these names, or all; raises InvalidConfigError for an unknown one."""
    return [_option(name) for name in names] or list(OPTIONS)


def _option(name: str) -> ConfigOption:
    option = _BY_NAME.get(name)
    if option is None:
        raise InvalidConfigError(
            f"no option of topics is named {_shown(name)!r}: there are {', '.join(_BY_NAME)}",
            key=_shown(name),
        )
    return option


def _read(name: str, text: str) -> Value:
    return _option(name).read(name, text.strip())


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"


def _refused(name: str, text: str, expected: str) -> InvalidConfigError:
    return InvalidConfigError(
        f"{name} is {_shown(text)!r}: must be {expected}", key=name, value=_shown(text)
    )


def _whole(minimum: int, maximum: int = INT64_MAX) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        # Only plain ASCII digits: int() would take "1_000" and other alphabets' digits.
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= len(str(INT64_MAX)):
            value = int(text)
            if minimum <= value <= maximum:
                return value
        raise _refused(name, text, f"a whole number, {minimum} to {maximum}")

    return read


def _ratio(name: str, text: str) -> float:
    whole, _, fraction = text.partition(".")
    if whole in {"0", "1"} and (fraction or "0").isascii() and (fraction or "0").isdigit():
        value = float(text)
        if value <= 1.0:
            return value
    raise _refused(name, text, "0.0 to 1.0")


def _cleanup_policy(name: str, text: str) -> CleanupPolicy:
    policy = ",".join(sorted({part.strip() for part in text.split(",")}))
    if policy not in {each.value for each in CleanupPolicy}:
        raise _refused(name, text, "delete, compact, or compact,delete")
    return CleanupPolicy(policy)


OPTIONS = (
    ConfigOption(
        name="cleanup.policy",
        documentation="The rule for old records: delete (by age and size), compact (the newest"
        " of each key stays), or compact,delete.",
        read=_cleanup_policy,
    ),
    ConfigOption(
        name="delete.retention.ms",
        documentation="How long compaction keeps a record without a value, which deletes its key,"
        " and the marker of a transaction, in milliseconds.",
        read=_whole(0),
    ),
    ConfigOption(
        name="max.compaction.lag.ms",
        documentation="The time after which a record is compacted at the latest, in milliseconds.",
        read=_whole(1),
    ),
    ConfigOption(
        name="max.message.bytes",
        documentation="The largest payload of a record batch, in bytes; by default as the broker"
        " is set up (message_max_bytes).",
        read=_whole(1_024, MAX_MESSAGE_BYTES_MAX),
    ),
    ConfigOption(
        name="min.cleanable.dirty.ratio",
        documentation="The part of a log that must be new before it is compacted, 0 to 1.",
        read=_ratio,
    ),
    ConfigOption(
        name="min.compaction.lag.ms",
        documentation="The time for which a record is not compacted, in milliseconds.",
        read=_whole(0),
    ),
    ConfigOption(
        name="retention.bytes",
        documentation="How many bytes a partition keeps before its oldest records are deleted;"
        " -1: no limit.",
        read=_whole(-1),
    ),
    ConfigOption(
        name="retention.ms",
        documentation="How long a record is kept after it was appended, in milliseconds;"
        " -1: no limit.",
        read=_whole(-1),
    ),
    ConfigOption(
        name="segment.bytes",
        documentation="The size of a step in which the broker deletes old records, in bytes.",
        read=_whole(1_024, 1 << 40),
    ),
    ConfigOption(
        name="segment.ms",
        documentation="The age of a step in which the broker deletes old records, in milliseconds.",
        read=_whole(1),
    ),
)
"""All options, by name."""
_BY_NAME = {option.name: option for option in OPTIONS}
