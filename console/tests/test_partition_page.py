"""The page of a partition names the service without which its holder is not known."""

from aiosemel import PartitionDescription, PartitionProducers, TopicPartition
from semel_console.insight.offset_views import Watermarks
from semel_console.views.blocks import Missing
from semel_console.views.partition_view import AskedPartition, partition_page
from semel_console.views.record_views.aborted_view import AbortedRanges

AWAY = Missing(what="The holder", why="coordinator-0 does not answer")


def asked(stable_end: int) -> AskedPartition:
    """Return the answers about a partition of nine offsets, whose coordinator is away."""
    at = TopicPartition("orders", 0)
    return AskedPartition(
        at=at,
        described=PartitionDescription(partition=0, leader_id=0, leader_epoch=0),
        marks=Watermarks(start=0, stable_end=stable_end, end=9),
        holder=AWAY,
        waiting=2,
        producers=PartitionProducers(
            partition=at,
            high_watermark=9,
            last_stable_offset=stable_end,
            producers=(),
            producer_count=0,
        ),
        aborted=AbortedRanges(known=(), missing=()),
    )


def test_a_held_partition_names_the_service_that_would_know_its_holder() -> None:
    page = partition_page(asked(7))
    assert AWAY in page.sections[0].blocks
    (notice,) = page.notices
    assert "do not see 2 records from offset 7 on" in notice.text


def test_a_partition_without_a_holder_misses_none() -> None:
    page = partition_page(asked(9))
    assert AWAY not in page.sections[0].blocks
    assert "No transaction holds the last stable offset" in page.notices[0].text
