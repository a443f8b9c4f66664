"""Logging of a library whose user has a handler or a filter that fails."""

import logging
from collections.abc import Iterator

import pytest

from semel_common.library_log import get_logger


class Broken(logging.Handler):
    """Fails, and counts how often."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.calls += 1
        raise OSError(28, f"No space left on device for {record.name}")


@pytest.fixture
def broken() -> Iterator[Broken]:
    handler = Broken()
    logger = logging.getLogger("semel_test")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_a_handler_that_fails_raises_nothing_and_is_shown_to_its_developer(
    broken: Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    log = get_logger("semel_test")
    log.warning("%s happened", "it")
    log.log(logging.ERROR, "worse happened")
    assert broken.calls == 2
    assert "No space left on device for semel_test" in capsys.readouterr().err


def test_a_line_names_the_place_that_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("semel_test").warning("%d of %d", 1, 2)
    (record,) = caplog.records
    assert record.getMessage() == "1 of 2"
    assert record.funcName == "test_a_line_names_the_place_that_logs_it"
