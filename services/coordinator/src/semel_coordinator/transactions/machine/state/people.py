"""Who wrote a transaction, and who decided it in its producer's place."""

from typing import NamedTuple


class Client(NamedTuple):
    """A program that writes transactions."""

    name: str
    """The instance id of its producer object; of a joint transaction: the writer."""
    address: str = ""
    """From where it called last for its producer id; empty: not known."""
    principal: str = ""
    """As whom it called then; empty: not known."""


class Operator(NamedTuple):
    """A person who decides in a producer's place."""

    name: str
    """In their own words, as the reason is; empty: the request said none."""
    words: str
    """The reason."""
    principal: str = ""
    """As the cluster knows the caller."""
    address: str = ""
