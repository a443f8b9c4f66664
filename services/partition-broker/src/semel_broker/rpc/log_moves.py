"""Moves of partitions as requests name them."""

from semel.broker.v1 import moves_pb2 as wire
from semel_broker.machine.moves import Move
from semel_common.ids import TopicPartition
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_name


def log_move(request: wire.CopyLogRequest | wire.HandOverLogRequest) -> Move:
    """Return the move that a request is about. Raises InvalidRequestError."""
    require_name("topic_id", request.topic_id)
    partition = require_int("partition", request.partition, maximum=INT32_MAX)
    return Move(
        partition=TopicPartition(request.topic_id, partition),
        leader_epoch=require_int("leader_epoch", request.leader_epoch),
        moving_to=require_int("broker_id", request.broker_id, maximum=INT32_MAX),
    )
