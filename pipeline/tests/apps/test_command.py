"""What every pipeline's command line says, and how it ends, without Spark."""

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pytest

from semel_pipelines import command
from semel_runtime.testing.default_signals import default_signals

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class BusyQuery:
    """A query that is told to stop while it works."""

    recentProgress = ()  # noqa: N815 - Spark's name

    def __init__(self, number: signal.Signals) -> None:
        self._number = number
        self.stopped = False
        self.handlers_while_it_finishes: list[object] = []

    def awaitTermination(self, _timeout_s: int) -> bool:  # noqa: N802 - Spark's name
        if not self.stopped:
            signal.raise_signal(self._number)
        return self.stopped

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        self.handlers_while_it_finishes = [signal.getsignal(each) for each in STOPPING]

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    with default_signals():
        yield


@pytest.mark.parametrize("number", STOPPING)
def test_a_query_that_is_told_to_stop_finishes_and_a_second_time_ends_the_process(
    number: signal.Signals,
) -> None:
    query = BusyQuery(number)
    command.follow(cast("StreamingQuery", query))
    assert query.stopped
    assert query.handlers_while_it_finishes == [signal.SIG_DFL] * 3


def test_a_setting_of_spark_may_have_an_equals_sign_in_its_value() -> None:
    parsed = command.parser("pipeline", "").parse_args(
        ["--bootstrap=b:1", "--checkpoint=c", "--conf=a=b=c"]
    )
    assert parsed.conf == [("a", "b=c")]


@pytest.mark.parametrize("text", ["spark.executor.cores", "=1"])
def test_a_setting_of_spark_that_is_none_is_said_in_a_sentence(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.parser("pipeline", "").parse_args(["--checkpoint=c", f"--conf={text}"])
    assert f"{text!r} is not KEY=VALUE" in capsys.readouterr().err
