"""The columns of the sink: which a frame must have, and what of them goes where."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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

from pyspark_semel.errors import SchemaError

KEY, VALUE, HEADERS, TOPIC, PARTITION = "key", "value", "headers", "topic", "partition"
_WRITTEN = (KEY, VALUE, HEADERS, TOPIC, PARTITION)
_IGNORED = ("offset", "timestamp", "timestampType")
"""What frames of the source have besides: given out anew to what is written."""
_WANTED = {
    KEY: "string or binary",
    VALUE: "string or binary",
    HEADERS: "array<struct<key: string, value: binary>>",
    TOPIC: "string",
    PARTITION: "int",
}


class Rows(NamedTuple):
    """Consecutive rows for one topic, and one partition of it; None: for any."""

    topic: str
    partition: int | None
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None


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


def parted(batch: pa.RecordBatch, topic: str | None) -> Iterator[Rows]:
    """Part the rows of a batch by where they go; those of each part keep their order.

    ``topic`` is that of all rows; None: the column says it. Raises SchemaError for a row of which
    nobody says it.
    """
    for chosen, (name, partition) in _places(batch, topic):
        yield Rows(
            name,
            partition,
            _column(chosen, VALUE) or [],
            _column(chosen, KEY),
        )


def _places(
    batch: pa.RecordBatch, topic: str | None
) -> Iterator[tuple[pa.RecordBatch, tuple[str, int | None]]]:
    by = [name for name in (TOPIC, PARTITION) if _says(batch, name)]
    if topic is not None and TOPIC in by:
        by.remove(TOPIC)
    if not by:
        yield batch, (_checked(topic), None)
        return
    places = pa.table([batch[name] for name in by], names=by).group_by(by).aggregate([])
    for place in places.to_pylist():
        mask = None
        for name in by:
            value = place[name]
            same = pc.is_null(batch[name]) if value is None else pc.equal(batch[name], value)
            same = pc.fill_null(same, False)
            mask = same if mask is None else pc.and_(mask, same)
        yield batch.filter(mask), (_checked(topic or place.get(TOPIC)), place.get(PARTITION))


def _says(batch: pa.RecordBatch, name: str) -> bool:
    return name in batch.schema.names and batch[name].null_count < batch.num_rows


def _checked(topic: str | None) -> str:
    if topic is None:
        raise SchemaError(
            "a row has no topic: its column topic is null, and no option topic is set"
        )
    return topic


def _column(batch: pa.RecordBatch, name: str) -> list[bytes | None] | None:
    if name not in batch.schema.names or (name == KEY and not _says(batch, name)):
        return None
    column = batch[name]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary() if column.type == pa.large_string() else pa.binary())
    items: list[bytes | None] = column.to_pylist()
    return items
