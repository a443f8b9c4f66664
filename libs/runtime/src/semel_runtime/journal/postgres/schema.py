"""What lies in a journal's schema.

* `chunks` has one row for each append: its records, as one message `Chunk`.
* `batches` has one row for each record batch that rode along.
* `tail` is one row, which every append updates: the end of the journal, and its owner's epoch.
* `owner` is one row, which every other write locks: the owner, and the snapshot that stands for
  the records below `first_offset`. Claims change both rows; so appends and upkeep never wait for
  each other, and a claim waits for both.
* `snapshot_pieces` are the rows of that snapshot, and of one that is being written.

CRC-32C columns cover the row's key and data (see `chunks.py`). Batches have the service's own.
Nothing is compressed by the server: what lies in batches is, by its producer.
"""

_VERSION_1 = """
CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);

CREATE TABLE owner (
    id int PRIMARY KEY CHECK (id = 1),
    epoch bigint NOT NULL,
    token text NOT NULL,
    snapshot bigint NOT NULL,
    snapshot_pieces bigint NOT NULL,
    first_offset bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO owner VALUES (1, 0, '', 0, 0, 0);

CREATE TABLE tail (
    id int PRIMARY KEY CHECK (id = 1),
    epoch bigint NOT NULL,
    next_offset bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO tail VALUES (1, 0, 0);

CREATE TABLE chunks (
    base_offset bigint PRIMARY KEY,
    record_count bigint NOT NULL,
    crc32c bigint NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE snapshot_pieces (
    snapshot bigint NOT NULL,
    number bigint NOT NULL,
    crc32c bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (snapshot, number)
);

CREATE TABLE batches (
    partition bigint NOT NULL,
    base_offset bigint NOT NULL,
    record_count bigint NOT NULL,
    max_timestamp_ms bigint NOT NULL,
    size_bytes bigint NOT NULL,
    header bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (partition, base_offset) INCLUDE (max_timestamp_ms)
);

ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE snapshot_pieces ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE batches
    ALTER COLUMN header SET STORAGE EXTERNAL, ALTER COLUMN payload SET STORAGE EXTERNAL;
"""

MIGRATIONS = (_VERSION_1,)
"""Scripts that lead from one schema version to the next. Released ones never change."""

SCHEMA_VERSION = len(MIGRATIONS)

TABLES = ("meta", "owner", "tail", "chunks", "snapshot_pieces", "batches")
"""What every version has; the first three are what a journal is known by."""

SINGLE_ROWS = ("owner", "tail")
"""Tables that have one row, always."""
