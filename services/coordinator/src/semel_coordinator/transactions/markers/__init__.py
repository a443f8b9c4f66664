"""The fan-out: telling every participant of a decided transaction its outcome.

`plan` knows which markers are still to be sent to which instance, and `retries` when a marker is
sent again; both are pure. `sender` sends them.
"""

from semel_coordinator.transactions.markers.options import MarkerOptions
from semel_coordinator.transactions.markers.sender import MarkerSender

__all__ = ["MarkerOptions", "MarkerSender"]
