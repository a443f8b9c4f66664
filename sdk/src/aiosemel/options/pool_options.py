"""Options of a pool of transactional producers: its name, its size, and its time-outs."""

from dataclasses import dataclass

from aiosemel._shared.name_checks import check_str
from aiosemel.errors import InvalidConfigError
from aiosemel.options.option_checks import check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How long a pool waits, and for what."""

    acquire_timeout_ms: int = 10_000
    """How long a block waits for a free producer, in milliseconds; 0: it takes one that is free."""
    close_timeout_ms: int = 5_000
    """How long closing the pool waits for blocks that run, in milliseconds."""
    wait_until_visible: bool = True
    """Whether opening the pool waits until the transactions of the process before it are complete.
    Readers see them then, unless another transaction is open before them in a partition: a program
    that has to read all of them reads up to the ``end_offsets`` of READ_UNCOMMITTED."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        check_values(self, may_be_zero=("acquire_timeout_ms", "close_timeout_ms"))


def pool_name(prefix: str, instance: str | None) -> str:
    """Return the beginning of the transactional ids of a pool.

    Raises InvalidConfigError, TypeError.
    """
    if not check_str("prefix", prefix):
        raise InvalidConfigError("prefix is empty")
    if instance is None:
        return prefix
    if not check_str("instance", instance):
        raise InvalidConfigError(
            f"instance of the pool {prefix!r} is empty: None means no instance"
        )
    return f"{prefix}-{instance}"


def checked_size(size: int) -> int:
    """Return the size of a pool. Raises InvalidConfigError."""
    if type(size) is not int or size < 1:
        raise InvalidConfigError(f"size is {size!r}, not a whole number from 1 on")
    return size
