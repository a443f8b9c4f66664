"""What lies in a journal file.

* `chunks` has one row for each append: its records, as one message `Chunk`.
* `batches` has one row for each record batch that rode along. The payload of a large append is in
  a file of its own (`payloads`): then the row's `payload` is empty, and the row names the place.
* `owner` is one row: the owner, and the snapshot that stands for the records below `first_offset`.
* `snapshot_pieces` are the rows of that snapshot, and of one that is being written.
* `snapshot_appends` and `rewrites` are views to insert into: their triggers check the epoch, so
  that any number of rows with this check is one statement.
* `meta` says which service and cluster the file belongs to, and (`log`) which log is in
  front of it: its number, and its mark.

CRC-32C columns cover the row's key and data (see `chunks.py`). Batches have the service's own.
"""

APPLICATION_ID = 0x53454D4C
"""`SEML`, in the header of the file."""

FENCED = "fenced"
"""What the triggers say when the epoch is not the owner's."""

_VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE owner (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    token TEXT NOT NULL,
    snapshot INTEGER NOT NULL,
    snapshot_pieces INTEGER NOT NULL,
    first_offset INTEGER NOT NULL
) STRICT;
INSERT INTO owner VALUES (1, 0, '', 0, 0, 0);

CREATE TABLE chunks (
    base_offset INTEGER PRIMARY KEY,
    record_count INTEGER NOT NULL,
    crc32c INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE snapshot_pieces (
    snapshot INTEGER NOT NULL,
    number INTEGER NOT NULL,
    crc32c INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (snapshot, number)
) STRICT;

CREATE TABLE batches (
    partition INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    record_count INTEGER NOT NULL,
    max_timestamp_ms INTEGER NOT NULL,
    header BLOB NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX batches_by_offset ON batches (partition, base_offset, max_timestamp_ms);

CREATE VIEW positions AS SELECT epoch, token, first_offset, snapshot, snapshot_pieces, coalesce(
    (SELECT base_offset + record_count FROM chunks ORDER BY base_offset DESC LIMIT 1), first_offset
) AS next_offset FROM owner;

CREATE VIEW appends AS SELECT
    NULL AS epoch, NULL AS crc32c, NULL AS partition, NULL AS base_offset, NULL AS record_count,
    NULL AS max_timestamp_ms, NULL AS header, NULL AS data;

CREATE TRIGGER append_chunk INSTEAD OF INSERT ON appends WHEN NEW.partition IS NULL
BEGIN
    SELECT RAISE(ABORT, 'fenced') FROM positions WHERE epoch <> NEW.epoch;
    SELECT RAISE(ABORT, 'misplaced') FROM positions WHERE next_offset <> NEW.base_offset;
    INSERT INTO chunks VALUES (NEW.base_offset, NEW.record_count, NEW.crc32c, NEW.data);
END;

CREATE TRIGGER append_batch INSTEAD OF INSERT ON appends WHEN NEW.partition IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'misplaced') FROM (
        SELECT base_offset + record_count AS next_offset FROM batches
        WHERE partition = NEW.partition ORDER BY base_offset DESC LIMIT 1
    ) WHERE next_offset > NEW.base_offset;
    INSERT INTO batches VALUES (
        NEW.partition, NEW.base_offset, NEW.record_count, NEW.max_timestamp_ms, NEW.header, NEW.data
    );
END;

CREATE VIEW snapshot_appends AS SELECT
    NULL AS epoch, NULL AS snapshot, NULL AS number, NULL AS crc32c, NULL AS data;

CREATE TRIGGER append_snapshot_piece INSTEAD OF INSERT ON snapshot_appends
BEGIN
    SELECT RAISE(ABORT, 'fenced') FROM owner WHERE epoch <> NEW.epoch;
    INSERT INTO snapshot_pieces VALUES (NEW.snapshot, NEW.number, NEW.crc32c, NEW.data);
END;
"""

_VERSION_2 = """
CREATE VIEW rewrites AS SELECT
    NULL AS epoch, NULL AS partition, NULL AS base_offset, NULL AS max_timestamp_ms,
    NULL AS header, NULL AS payload;

CREATE TRIGGER remove_batch INSTEAD OF INSERT ON rewrites WHEN NEW.payload IS NULL
BEGIN
    SELECT RAISE(ABORT, 'fenced') FROM owner WHERE epoch <> NEW.epoch;
    DELETE FROM batches WHERE partition = NEW.partition AND base_offset = NEW.base_offset;
END;

CREATE TRIGGER replace_batch INSTEAD OF INSERT ON rewrites WHEN NEW.payload IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'fenced') FROM owner WHERE epoch <> NEW.epoch;
    UPDATE batches SET
        max_timestamp_ms = NEW.max_timestamp_ms, header = NEW.header, payload = NEW.payload
    WHERE partition = NEW.partition AND base_offset = NEW.base_offset;
END;
"""

_VERSION_3 = """
DROP VIEW appends;
ALTER TABLE batches ADD COLUMN payload_file INTEGER;
ALTER TABLE batches ADD COLUMN payload_position INTEGER;
ALTER TABLE batches ADD COLUMN payload_bytes INTEGER;
CREATE INDEX batches_by_payload ON batches (payload_file, payload_position, payload_bytes)
WHERE payload_file IS NOT NULL;

DROP TRIGGER replace_batch;
CREATE TRIGGER replace_batch INSTEAD OF INSERT ON rewrites WHEN NEW.payload IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'fenced') FROM owner WHERE epoch <> NEW.epoch;
    UPDATE batches SET
        max_timestamp_ms = NEW.max_timestamp_ms, header = NEW.header, payload = NEW.payload,
        payload_file = NULL, payload_position = NULL, payload_bytes = NULL
    WHERE partition = NEW.partition AND base_offset = NEW.base_offset;
END;
"""
PAYLOADS_VERSION = 3
"""From this schema version on, payloads can be in files."""

MIGRATIONS = (_VERSION_1, _VERSION_2, _VERSION_3)
"""Scripts that lead from one schema version to the next. Released ones never change."""

SCHEMA_VERSION = len(MIGRATIONS)
