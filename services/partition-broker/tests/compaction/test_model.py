"""Any log, compacted at any time by any number of steps: no reader can tell the difference."""

from compaction_harness import OPENED_MAX_BYTES, RETENTION_MS, Log, Reader, Write, state_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from semel.common.v1.records_pb2 import Codec

KEYS = st.sampled_from([b"a", b"b", b"c", b""])
VALUES = st.sampled_from([b"", b"one", b"two", None])
WRITES = st.lists(st.builds(Write, key=st.none() | KEYS, value=VALUES), min_size=1, max_size=4)
CODECS = st.sampled_from([Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD])
PRODUCERS = st.integers(min_value=1, max_value=3)


class CompactedLog(RuleBasedStateMachine):
    """Writers, readers and passes in any order; a copy of the log that is left alone tells."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.readers: list[Reader] = []
        self.all_opened = True

    @initialize(all_opened=st.sampled_from([True, True, False]))
    def choose(self, *, all_opened: bool) -> None:
        self.all_opened = all_opened

    # -- writers -------------------------------------------------------------------------------

    @rule(writes=WRITES, codec=CODECS)
    def write(self, writes: list[Write], codec: Codec.ValueType) -> None:
        self.log.append(*writes, codec=codec)

    @precondition(lambda self: not self.all_opened)
    @rule(key=KEYS, producer_id=st.just(0) | PRODUCERS)
    def write_more_than_is_opened(self, key: bytes, producer_id: int) -> None:
        large = Write(key, bytes(OPENED_MAX_BYTES))
        self.log.append(large, producer_id=producer_id, codec=Codec.CODEC_ZSTD)

    @rule(writes=WRITES, producer_id=PRODUCERS)
    def write_in_a_transaction(self, writes: list[Write], producer_id: int) -> None:
        self.log.append(*writes, producer_id=producer_id)

    @precondition(lambda self: self.log.open)
    @rule(data=st.data(), commit=st.booleans())
    def end_a_transaction(self, data: st.DataObject, *, commit: bool) -> None:
        producer_id, _ = data.draw(st.sampled_from(sorted(self.log.open)))
        self.log.end(producer_id, commit=commit)

    @rule(ms=st.sampled_from([1, RETENTION_MS // 2, RETENTION_MS]))
    def let_time_pass(self, ms: int) -> None:
        self.log.now_ms += ms
        since = self.log.now_ms - RETENTION_MS
        self.readers = [reader for reader in self.readers if reader.started_ms > since]

    # -- passes --------------------------------------------------------------------------------

    @rule(keys_max=st.sampled_from([1, 2, 1_000]), step=st.integers(min_value=1, max_value=3))
    def compact(self, keys_max: int, step: int) -> None:
        self.log.compact(keys_max=keys_max, step=step)

    @rule(steps_max=st.integers(min_value=0, max_value=6))
    def be_killed_in_a_pass(self, steps_max: int) -> None:
        self.log.compact(steps_max=steps_max, step=1)

    # -- readers -------------------------------------------------------------------------------

    @rule(data=st.data(), judges=st.booleans(), batches=st.integers(min_value=1, max_value=4))
    def begin_to_read(self, data: st.DataObject, *, judges: bool, batches: int) -> None:
        start = data.draw(st.integers(min_value=0, max_value=self.log.last_stable_offset))
        reader = Reader(start, started_ms=self.log.now_ms, judges_for_itself=judges)
        self.readers.append(reader)
        for _ in range(batches):
            reader.read(self.log)

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), batches=st.integers(min_value=1, max_value=4))
    def read_on(self, data: st.DataObject, batches: int) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        for _ in range(batches):
            reader.read(self.log)

    # -- what holds ----------------------------------------------------------------------------

    @invariant()
    def what_is_left_is_as_it_was(self) -> None:
        left = self.log.committed()
        before = {record.offset: record for record in self.log.committed(original=True)}
        assert [record.offset for record in left] == sorted({record.offset for record in left})
        assert all(before[record.offset] == record for record in left)

    @invariant()
    def from_every_offset_on_the_keys_have_the_same_values(self) -> None:
        left, before = self.log.committed(), self.log.committed(original=True)
        for start in range(self.log.last_stable_offset + 1):
            assert state_of(left, start) == state_of(before, start), start

    @invariant()
    def nothing_above_the_last_stable_offset_is_touched(self) -> None:
        stable = self.log.last_stable_offset
        left, before = self.log.batches(), self.log.batches(original=True)
        assert [each for each in left if each.base_offset >= stable] == [
            each for each in before if each.base_offset >= stable
        ]

    @invariant()
    def who_reads_to_the_end_in_time_knows_every_value(self) -> None:
        now = [Reader(0, started_ms=0, judges_for_itself=judges) for judges in (False, True)]
        for reader in [*self.readers, *now]:
            at_the_end = reader.copy()
            while at_the_end.read(self.log):
                pass
            before = self.log.committed(original=True, upto=reader.upto(self.log))
            assert state_of(at_the_end.records, reader.start) == state_of(before, reader.start)
            assert set(at_the_end.held) <= set(self.log.open)

    def teardown(self) -> None:
        """In the end no useless record is left."""
        for producer_id, _ in list(self.log.open):
            self.log.end(producer_id, commit=True)
        for _ in range(3):
            self.log.compact()
            self.log.now_ms += RETENTION_MS
            self.readers.clear()
            self.who_reads_to_the_end_in_time_knows_every_value()
        if self.all_opened:
            left = self.log.committed()
            values = {each.key: each.value for each in left}
            assert values == state_of(self.log.committed(original=True))
            assert len(left) == len(values)
            for batch in self.log.batches():
                assert self.log.visible(batch) or self.log.ends_what_is_left(batch)


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(max_examples=100, stateful_step_count=25)
