"""Whole Semel clusters on one machine: in one process for users' tests, or as real processes.

``LocalCluster`` is a cluster within this process, ``ProcessCluster`` has a process for each
service. Neither is loaded before it is used: a supervisor of processes needs no service in memory.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semel_local.cluster import LocalCluster
    from semel_local.processes import ProcessCluster

__all__ = ["LocalCluster", "ProcessCluster"]


def __getattr__(name: str) -> object:
    """Load a class when it is first asked for (PEP 562)."""
    match name:
        case "LocalCluster":
            from semel_local.cluster import LocalCluster  # noqa: PLC0415 - see above

            return LocalCluster
        case "ProcessCluster":
            from semel_local.processes import ProcessCluster  # noqa: PLC0415 - see above

            return ProcessCluster
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
