"""How markers are sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerOptions:
    """Limits and pauses of the fan-out."""

    listener: str = "default"
    """Name of the listener on which services reach one another."""
    request_timeout_ms: int = 5_000
    """How long one request to a participant may take, in milliseconds."""
    backoff_ms: int = 20
    """Pause after the first failure, in milliseconds; it doubles with each that follows."""
    backoff_max_ms: int = 1_000
    """The longest pause, in milliseconds."""
    batch_markers_max: int = 1_000
    """Markers in one request."""
    batch_participants_max: int = 10_000
    """Participants in one request; a marker alone may have more."""
    topics_per_question_max: int = 100
    """Topics in one question to the controller, whether they are deleted."""
