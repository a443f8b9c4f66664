"""The fan-out: telling every participant of a decided transaction its outcome.

`plan` knows what is still to be told to whom, and is pure; `sender` does the telling.
"""

from semel_coordinator.transactions.markers.options import MarkerOptions
from semel_coordinator.transactions.markers.sender import MarkerSender

__all__ = ["MarkerOptions", "MarkerSender"]
