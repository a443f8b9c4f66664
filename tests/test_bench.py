"""What the measurements do when there is nothing to measure: they say so, and give no figure."""

import pytest
from bench import deletion


async def test_a_deletion_that_does_not_end_gives_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "WINDOW_S", 0.01)
    monkeypatch.setattr(deletion, "WINDOWS", 1)
    monkeypatch.setattr(deletion, "DELETION_MAX_S", 0.0)
    with pytest.raises(TimeoutError, match="of the file are there after 0 s"):
        await deletion.deletion(megabytes=1)
