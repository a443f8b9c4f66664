"""No repeat of a request comes after its producer has gone through all sequences."""

import pytest

from semel.broker.v1.broker_pb2 import ProducePartition, ProduceRequest
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.record_batches import sequence_numbers
from simulation.sequences_sent import SequencesSent


@pytest.fixture(autouse=True)
def _few_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_numbers, "SEQUENCES", 32)


def _request(sequence: int, count: int, *, epoch: int = 0, partition: int = 0) -> ProduceRequest:
    batch = RecordBatch(
        producer_id=7, producer_epoch=epoch, base_sequence=sequence, record_count=count
    )
    return ProduceRequest(
        partitions=[ProducePartition(topic="a", partition=partition, batches=[batch])]
    )


def test_a_repeat_is_outlived_once_its_own_sequence_is_the_next_one_again() -> None:
    sent = SequencesSent()
    mark = sent.note(_request(0, 4))
    for sequence in range(4, 28, 4):
        sent.note(_request(sequence, 4))
        assert not sent.is_outlived(mark)
    sent.note(_request(28, 4))
    assert sent.is_outlived(mark)


def test_a_retry_is_no_progress() -> None:
    sent = SequencesSent()
    mark = sent.note(_request(0, 4))
    for _ in range(20):
        sent.note(_request(4, 4))
        sent.note(_request(8, 4))
    assert not sent.is_outlived(mark)


def test_other_epochs_and_partitions_do_not_count() -> None:
    sent = SequencesSent()
    mark = sent.note(_request(0, 4))
    for sequence in range(0, 64, 4):
        sent.note(_request(sequence % 32, 4, epoch=1))
        sent.note(_request(sequence % 32, 4, partition=1))
    assert not sent.is_outlived(mark)
