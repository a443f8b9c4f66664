"""New ids for clusters and topics, in the form in which Kafka shows them."""

import base64
from random import Random
from uuid import UUID


def new_id(random: Random) -> str:
    """Return a random UUID as 22 characters of url-safe base64; never one that begins with '-'."""
    while True:
        uuid = UUID(int=random.getrandbits(128), version=4)
        text = base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")
        # A command line would take it for an option.
        if not text.startswith("-"):
            return text
