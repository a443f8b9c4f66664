"""The time of a program hides no slow marker in `semel transactions timeline`."""

from dataclasses import replace

from ended_transactions import ENDED

from aiosemel import EndedParticipant, TopicPartition
from semel_cli.transactions.timeline import after_decision, longest_of, steps_of

AT = TopicPartition("orders", 0)


def test_the_longest_step_after_the_decision_is_told_apart() -> None:
    ended = replace(
        ENDED,
        start_time_ms=1_000,
        decided_time_ms=61_000,
        completed_time_ms=64_001,
        participants=(
            EndedParticipant(partition=AT, group_id=None, commits=True, marker_time_ms=64_000),
        ),
        participant_count=1,
    )
    steps = steps_of(ended, {})
    whole, late = longest_of(steps), longest_of(after_decision(ended, steps))
    assert whole is not None
    assert late is not None
    assert (whole[0].phase, whole[1]) == ("open", 60_000)
    assert (late[0].phase, late[1]) == ("marker of orders-0", 3_000)
