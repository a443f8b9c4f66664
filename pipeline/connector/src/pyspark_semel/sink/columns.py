"""The columns of the sink: the required ones, and their use. No I/O.

Rows are parted as columns. Optional columns (topics and partitions of their own) cost frames
without them nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from aiosemel import EncodedColumn, Headers
from pyspark_semel.errors import RecordError, SchemaError
from pyspark_semel.sink.encoding import ArrowColumn
from pyspark_semel.sink.partitioner import ANY, Partitions, partitions_of

KEY, VALUE, HEADERS, TOPIC, PARTITION = "key", "value", "headers", "topic", "partition"
_WRITTEN = (KEY, VALUE, HEADERS, TOPIC, PARTITION)
_IGNORED = ("offset", "timestamp", "timestampType")
"""Further columns of frames of the source: the cluster gives them out again for written records."""
_WANTED = {
    KEY: "string or binary",
    VALUE: "string or binary",
    HEADERS: "array<struct<key: string, value: binary>>",
    TOPIC: "string",
    PARTITION: "int",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows for one partition of one topic; None: for any of it."""

    topic: str
    partition: int | None
    values: Sequence[bytes | None] | EncodedColumn
    keys: Sequence[bytes | None] | EncodedColumn | None
    headers: Sequence[Headers] | None
    """With headers, the other columns are lists."""


class _Part(NamedTuple):
    """Rows ``start`` to ``stop`` - 1 go to one partition; None: to any."""

    partition: int | None
    start: int
    stop: int


def check(schema: StructType, topic: str | None) -> None:
    """Raise SchemaError for a frame that cannot be written, or not whole."""
    names = schema.fieldNames()
    for name in _WRITTEN:
        if names.count(name) > 1:
            raise SchemaError(f"the frame has {names.count(name)} columns {name}")
    if VALUE not in names:
        raise SchemaError(f"the frame has no column value, but {', '.join(names) or 'none'}")
    if topic is None and TOPIC not in names:
        raise SchemaError("neither an option topic nor a column topic says where rows go")
    unknown = [name for name in names if name not in (*_WRITTEN, *_IGNORED)]
    if unknown:
        raise SchemaError(
            f"the sink does not write the columns {', '.join(unknown)}, but"
            f" {', '.join(_WRITTEN)}: drop them, or put them into value, as with to_json(struct(…))"
        )
    for field in schema.fields:
        if field.name in _WANTED and not _fits(field):
            raise SchemaError(
                f"column {field.name} is {field.dataType.simpleString()}, not"
                f" {_WANTED[field.name]}: cast it"
            )


def _fits(field: StructField) -> bool:
    kind = field.dataType
    if field.name == HEADERS:
        return isinstance(kind, ArrayType) and _is_header(kind.elementType)
    if field.name == PARTITION:
        return isinstance(kind, IntegerType)
    if field.name == TOPIC:
        return isinstance(kind, StringType)
    return isinstance(kind, StringType | BinaryType)


def _is_header(kind: DataType) -> bool:
    return (
        isinstance(kind, StructType)
        and kind.fieldNames() == [KEY, VALUE]
        and isinstance(kind[KEY].dataType, StringType)
        and isinstance(kind[VALUE].dataType, BinaryType)
    )


def by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Part rows by topic; ``topic`` is that of all, None: the column says it for each.

    Raises RecordError for a row without it.
    """
    batch = batch.select([name for name in batch.schema.names if name in _WRITTEN])
    if topic is not None:
        yield topic, batch
        return
    named = batch[TOPIC].dictionary_encode()
    if named.null_count:
        raise RecordError("a row has no topic: its column topic is null, and no option says it")
    names = named.dictionary.to_pylist()
    for number, name in enumerate(names):
        yield name, batch if len(names) == 1 else batch.filter(pc.equal(named.indices, number))


def by_partition(topic: str, batch: pa.RecordBatch, partition_count: int) -> Iterator[Rows]:
    """Part the rows of a topic by partition: the column's, else that of the key, else any.

    Rows of each partition keep their order, and so do rows that may go to any. Raises RecordError
    for a missing partition.
    """
    keys = _bytes(batch, KEY)
    targets = _targets(topic, batch, keys, partition_count)
    if targets is None:
        yield from _rows(topic, batch, [_Part(None, 0, batch.num_rows)])
        return
    order = _order(targets, partition_count)
    ordered, targets = batch.take(pa.array(order)), targets[order]
    yield from _rows(topic, ordered, _parts(targets))


def _order(targets: Partitions, partition_count: int) -> npt.NDArray[np.intp]:
    """Return the rows in the order of their partitions; of short numbers, NumPy sorts digits."""
    is_short = partition_count <= np.iinfo(np.int16).max
    return np.argsort(targets.astype(np.int16) if is_short else targets, kind="stable")


def _parts(targets: Partitions) -> Iterator[_Part]:
    """Return where the rows of each partition are; ``targets`` ascend."""
    starts = [0, *(np.flatnonzero(np.diff(targets)) + 1).tolist()]
    for start, stop in pairwise([*starts, len(targets)]):
        target = int(targets[start])
        yield _Part(None if target == ANY else target, start, stop)


def _targets(
    topic: str, batch: pa.RecordBatch, keys: pa.Array | None, partition_count: int
) -> Partitions | None:
    """Return the partition of each row, or ``ANY``; None if any will do for all."""
    targets = None if keys is None else partitions_of(keys, partition_count)
    if not _says(batch, PARTITION):
        return targets
    column = batch[PARTITION]
    given = column.fill_null(ANY).to_numpy().astype(np.int64)
    said = column.is_valid().to_numpy(zero_copy_only=False)
    wrong = said & ((given < 0) | (given >= partition_count))
    if wrong.any():
        raise RecordError(
            f"a row names partition {given[wrong][0]} of topic {topic}, which has"
            f" {partition_count}: 0 to {partition_count - 1}"
        )
    return given if targets is None else np.where(said, given, targets)


def _rows(topic: str, batch: pa.RecordBatch, parts: Iterable[_Part]) -> Iterator[Rows]:
    """Cut a batch whose rows are in the order of their partitions."""
    return (_listed if _says(batch, HEADERS) else _encoded)(topic, batch, parts)


def _encoded(topic: str, batch: pa.RecordBatch, parts: Iterable[_Part]) -> Iterator[Rows]:
    values, keys = _bytes(batch, VALUE), _bytes(batch, KEY)
    nothing = pa.nulls(batch.num_rows, pa.binary())
    all_values = ArrowColumn.of(nothing if values is None else values)
    all_keys = None if keys is None else ArrowColumn.of(keys)
    for partition, start, stop in parts:
        some_keys = None if all_keys is None else all_keys.cut(start, stop)
        yield Rows(
            topic=topic,
            partition=partition,
            values=all_values.cut(start, stop),
            keys=some_keys if some_keys is not None and some_keys.has_any else None,
            headers=None,
        )


def _listed(topic: str, batch: pa.RecordBatch, parts: Iterable[_Part]) -> Iterator[Rows]:
    for partition, start, stop in parts:
        part = batch.slice(start, stop - start)
        values, keys = _bytes(part, VALUE), _bytes(part, KEY)
        yield Rows(
            topic=topic,
            partition=partition,
            values=[None] * len(part) if values is None else values.to_pylist(),
            keys=None if keys is None else keys.to_pylist(),
            headers=_headers(part),
        )


def _bytes(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """Return a column of text or bytes as bytes, at no cost; None if there is nothing in it."""
    return batch[name].cast(pa.binary()) if _says(batch, name) else None


def _headers(batch: pa.RecordBatch) -> list[Headers] | None:
    if not _says(batch, HEADERS):
        return None
    column = batch[HEADERS]
    flat = column.flatten()  # of the rows that have a list
    names, values = pc.struct_field(flat, 0), pc.struct_field(flat, 1)
    if names.null_count:
        raise RecordError("a header has no key: keys of headers may not be null")
    pairs = list(zip(names.to_pylist(), values.to_pylist(), strict=True))
    lengths = column.value_lengths().fill_null(0).to_pylist()
    return [pairs[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]


def _says(batch: pa.RecordBatch, name: str) -> bool:
    """Whether any row has something in a column."""
    return name in batch.schema.names and batch[name].null_count < batch.num_rows
