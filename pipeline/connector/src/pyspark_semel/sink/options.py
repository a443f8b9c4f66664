"""The options of the sink, read and checked before anything is written. No I/O."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from aiosemel import Compression, ProducerOptions, Security
from aiosemel.options.client_options import MAX_REQUEST_SIZE_LIMIT_BYTES
from pyspark_semel.errors import OptionError
from pyspark_semel.options import (
    API_TIMEOUT,
    API_TIMEOUT_MS,
    INT32_MAX,
    MAX_OUTAGE,
    MAX_OUTAGE_MS,
    Options,
    refuse,
    refuse_tables_and_paths,
    shown,
)

TOPIC = "topic"
TRANSACTIONAL_ID = "transactionalId"
TXN_APP_ID = "txnAppId"
TXN_VERSION = "txnVersion"
RESET = "transactionalIdReset"
TRANSACTION_TIMEOUT_MS = "transaction.timeout.ms"
MAX_REQUEST_SIZE = "max.request.size"
COMPRESSION = "compression.type"
_DOTTED = (TRANSACTION_TIMEOUT_MS, API_TIMEOUT, MAX_REQUEST_SIZE, COMPRESSION)
"""Those of Kafka's producer."""
_OWN = (TOPIC, TRANSACTIONAL_ID, TXN_APP_ID, TXN_VERSION, RESET)
_NEEDLESS = {
    "includeHeaders": "leave it out: a column headers is written where there is one",
    "kafka.partitioner.class": "give a column partition, where the key's is not to be",
}
"""Options of Kafka's sink, and what to do here."""
_SPARKS = ("checkpointLocation", "queryName")
"""Options of a stream that are Spark's, and come to its sink too."""
_DELIVERY_TIMEOUT_MS = 120_000
_BUFFER_BYTES = 32 << 20
_BATCH_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a user has said of one write, or of one stream."""

    bootstrap: str
    security: Security | None
    """How to connect."""
    topic: str | None
    """Of all rows; None: the column ``topic`` says it for each."""
    transactional_id: str | None
    txn_version: int | None
    reset: bool
    transaction_timeout_ms: int
    """How long a transaction may stay open without a sign of life."""
    api_timeout_ms: int
    """How long a call may wait for the cluster, with all its attempts."""
    max_outage_ms: int | None
    """How long a cluster that has answered once may be away; None: not longer than a call."""
    waits_at_first: bool = False
    """Whether it may be away as long before its first answer, too."""
    max_request_size_bytes: int
    """The largest record, and request."""
    compression: Compression
    cluster_id: str | None = None
    """The cluster that was asked when the write was planned; None: it was not asked yet."""

    @property
    def producer(self) -> ProducerOptions:
        """What the SDK is told of it."""
        longest_ms = max(self.api_timeout_ms, self.max_outage_ms or 0)
        return ProducerOptions(
            max_block_ms=longest_ms,
            waits_for_topics=False,
            delivery_timeout_ms=max(_DELIVERY_TIMEOUT_MS, longest_ms),
            max_request_size_bytes=self.max_request_size_bytes,
            buffer_memory_bytes=max(_BUFFER_BYTES, self.max_request_size_bytes),
            batch_size_bytes=min(_BATCH_BYTES, self.max_request_size_bytes),
            compression=self.compression,
        )


def of_batch(given: Mapping[str, str]) -> SinkOptions:
    """Read the options of a batch write; raises OptionError."""
    options = _options(given, (*_OWN, MAX_OUTAGE))
    read = _read(options)
    if options.text(MAX_OUTAGE) is not None:
        max_outage_ms = options.duration_ms(MAX_OUTAGE, MAX_OUTAGE_MS)
        read = replace(read, max_outage_ms=max_outage_ms, waits_at_first=True)
    if read.txn_version is not None and read.transactional_id is None:
        raise OptionError(f"{TXN_VERSION} is given without {TRANSACTIONAL_ID}: a version of what?")
    return read


def of_stream(given: Mapping[str, str]) -> SinkOptions:
    """Read the options of a stream; raises OptionError."""
    options = _options(given, (*_OWN, *_SPARKS, MAX_OUTAGE))
    if options.text(TXN_VERSION) is not None:
        raise OptionError(
            f"{TXN_VERSION} is for batch writes: the version of a stream's transaction is the"
            " number of its micro-batch"
        )
    return replace(_read(options), max_outage_ms=options.duration_ms(MAX_OUTAGE, MAX_OUTAGE_MS))


def _options(given: Mapping[str, str], known: Collection[str]) -> Options:
    refuse_tables_and_paths(given, instead=TOPIC)
    refuse(given, _NEEDLESS)
    return Options(given, known, _DOTTED)


def _read(options: Options) -> SinkOptions:
    topic = options.filled(TOPIC)
    read = SinkOptions(
        bootstrap=options.bootstrap,
        security=options.security,
        topic=None if topic is None else topic.strip(),
        transactional_id=_transactional_id(options),
        txn_version=options.integer(TXN_VERSION, minimum=0),
        reset=options.boolean(RESET, default=False),
        transaction_timeout_ms=_int32(options, TRANSACTION_TIMEOUT_MS, 1_000) or 60_000,
        api_timeout_ms=_int32(options, API_TIMEOUT, 1) or API_TIMEOUT_MS,
        max_outage_ms=None,
        max_request_size_bytes=options.integer(
            MAX_REQUEST_SIZE, minimum=1_024, maximum=MAX_REQUEST_SIZE_LIMIT_BYTES
        )
        or 1_000_000,
        compression=_compression(options.text(COMPRESSION)),
    )
    if read.reset and read.transactional_id is None:
        raise OptionError(f"{RESET} is true without {TRANSACTIONAL_ID}: nothing to take over")
    return read


def _int32(options: Options, name: str, minimum: int) -> int | None:
    return options.integer(name, minimum=minimum, maximum=INT32_MAX)


def _compression(given: str | None) -> Compression:
    if given is None:
        return Compression.NONE
    if given.lower() not in set(Compression):
        raise OptionError(f"{COMPRESSION} is {shown(given)}: neither {' nor '.join(Compression)}")
    return Compression(given.lower())


def _transactional_id(options: Options) -> str | None:
    """Return the id under the one name or the other: ``txnAppId`` is what Delta calls it."""
    ours, deltas = options.filled(TRANSACTIONAL_ID), options.filled(TXN_APP_ID)
    if ours is not None and deltas is not None and ours != deltas:
        raise OptionError(
            f"{TRANSACTIONAL_ID} is {shown(ours)} and {TXN_APP_ID} is {shown(deltas)}: they are two"
            " names of the same, give one"
        )
    return deltas if ours is None else ours
