"""What is done about records that are gone: an error, or a warning, as ``failOnDataLoss`` says."""

import logging

from pyspark_semel.errors import DataLossError

_log = logging.getLogger(__name__)
_ADVICE = (
    "to go on without them, set failOnDataLoss to false; a stream starts again with a new "
    "checkpointLocation, a batch with other offsets"
)


class DataLossReport:
    """Reports records that are gone."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail

    def report(self, what: str) -> None:
        """Raise DataLossError, or warn and let the caller go on with the present records."""
        if self._fail:
            raise DataLossError(f"{what}; {_ADVICE}")
        _log.warning("data loss: %s; failOnDataLoss is false, so the query goes on", what)
