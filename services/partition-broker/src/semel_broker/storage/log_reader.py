"""Reading logs so that nothing is passed over: batches follow one another, or the read fails.

Theory of operation. A log has a batch for each offset from its start to its end, but where the
machine knows that batches may be missing (``machine/gaps.py``). So each batch that is read begins
where the one before it ends. Rows that are gone without that, as by a damaged index, are damage
like a bit that has flipped in a payload. A read answers the batches before the damage first.
"""

from collections.abc import Sequence

from msgspec import Struct

from semel_broker.machine.log.gaps import first_break, is_allowed
from semel_broker.machine.values import LogPlace
from semel_broker.storage.damage import DamageReports
from semel_broker.storage.verified_store import DamagedBatchError
from semel_common.errors import CorruptMessageError, KafkaStorageError
from semel_runtime.journal.contract import BatchPosition, BatchStore, LaterBatches, StoredBatch
from semel_runtime.journal.journal_errors import JournalCorruptError, JournalError


class Damage(Struct, frozen=True, kw_only=True):
    """Why a log cannot be read at an offset."""

    error: CorruptMessageError
    batch: StoredBatch | None
    """The batch that is damaged, as it lies there; None: it is not to be had."""


class LogReader:
    """Reads the logs of one broker. Every reader of batches reads through this."""

    def __init__(self, store: BatchStore, reports: DamageReports) -> None:
        self._store = store
        self._reports = reports

    async def read(
        self, place: LogPlace, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read batches as ``BatchStore.read`` does.

        Answers none only if none is left, or if the log was cut past the offset meanwhile.
        Raises CorruptMessageError for damage at the offset, KafkaStorageError if the medium fails.
        """
        found = await self.look(place, offset, max_bytes=max_bytes, upto=upto)
        if isinstance(found, Damage):
            raise found.error
        return found

    async def look(
        self, place: LogPlace, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch] | Damage:
        """Read as ``read`` does, but answer the damage. Raises KafkaStorageError."""
        try:
            found = await self._read(place.log_id, offset, max_bytes=max_bytes, upto=upto)
        except JournalCorruptError as error:
            batch = error.batch if isinstance(error, DamagedBatchError) else None
            return Damage(error=self._reports.found(place, offset, str(error)), batch=batch)
        except JournalError as error:
            raise _failed(place, offset, error) from error
        return self._following(place, offset, upto, found)

    async def read_headers(
        self, place: LogPlace, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read batches without their payloads; raises as ``read``."""
        try:
            found = await self._store.read_headers(
                place.log_id, offset, rows_max=rows_max, upto=upto
            )
        except JournalCorruptError as error:
            raise self._reports.found(place, offset, str(error)) from error
        except JournalError as error:
            raise _failed(place, offset, error) from error
        following = self._following(place, offset, upto, found)
        if isinstance(following, Damage):
            raise following.error
        return following

    async def first_at(
        self, place: LogPlace, timestamp_ms: int, *, upto: int, start: int
    ) -> BatchPosition | None:
        """Find a batch by its time, as ``BatchStore.first_at`` does; raises as ``read``.

        An index that has lost batches would find one too far on, so the one before it is looked at.
        """
        try:
            found = await self._store.first_at(place.log_id, timestamp_ms, upto=upto, start=start)
        except JournalError as error:
            raise self._not_searched(place, start, error) from error
        at = upto if found is None else found.base_offset
        if at > start:
            for before in await self.read_headers(place, at - 1, rows_max=1, upto=at):
                if before.max_timestamp_ms >= timestamp_ms and before.base_offset >= start:
                    raise self._reports.found(
                        place, before.base_offset, "a search by time passes over the batch"
                    )
        return found

    async def later(self, place: LogPlace, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """Find batches from the end back, as ``BatchStore.later`` does; raises as ``read``."""
        try:
            return await self._store.later(place.log_id, timestamp_ms, upto=upto)
        except JournalError as error:
            raise self._not_searched(place, upto, error) from error

    async def _read(
        self, log_id: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read; if there is damage further on, read the first batch alone."""
        try:
            return await self._store.read(log_id, offset, max_bytes=max_bytes, upto=upto)
        except DamagedBatchError:
            raise
        except JournalCorruptError:
            return await self._store.read(log_id, offset, max_bytes=1, upto=upto)

    def _following(
        self, place: LogPlace, offset: int, upto: int, found: Sequence[StoredBatch]
    ) -> Sequence[StoredBatch] | Damage:
        """Return the batches up to the first gap that should not be there."""
        number = first_break(place.gaps, offset, found)
        if number is not None:
            if number:
                return found[:number]
            return self._missing(place, offset, found[0].base_offset) or found
        if not found and offset < upto and not is_allowed(place.gaps, offset, upto):
            return self._missing(place, offset, upto) or found
        return found

    def _missing(self, place: LogPlace, offset: int, end_offset: int) -> Damage | None:
        """Return the damage that a gap at an offset is, unless the log was cut there meanwhile."""
        if place.log_start.offset > offset:
            return None
        problem = f"no batch is found between offsets {offset} and {end_offset}"
        return Damage(error=self._reports.found(place, offset, problem), batch=None)

    def _not_searched(
        self, place: LogPlace, offset: int, error: JournalError
    ) -> CorruptMessageError | KafkaStorageError:
        if isinstance(error, JournalCorruptError):
            return self._reports.found(place, offset, str(error))
        return _failed(place, offset, error)


def _failed(place: LogPlace, offset: int, error: JournalError) -> KafkaStorageError:
    return KafkaStorageError(
        f"topic {place.topic!r}, partition {place.partition.partition}: the log cannot be read at"
        f" offset {offset}: {error}"
    )
