"""What a console may do, and where it listens unless it is told; loads nothing of the SDK."""

from enum import StrEnum

DEFAULT_PORT = 9080
DEFAULT_LISTEN = f"127.0.0.1:{DEFAULT_PORT}"


class Mode(StrEnum):
    """What the console may do to the cluster, beside the rights of its user."""

    READ_ONLY = "read-only"
    """It shows. The server refuses every action."""
    OPERATOR = "operator"
    """It also ends transactions: each action has a dry run, and asks for a reason."""
