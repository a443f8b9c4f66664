"""What participants are told by their settings."""

from pathlib import Path

import pytest

from semel_runtime.participant.participant_settings import ParticipantSettings


@pytest.mark.parametrize(
    ("expiration_ms", "settling_ms"), [(86_400_000, 600_000), (600_001, 600_000), (7_500, 7_500)]
)
def test_time_to_settle_does_not_depend_on_how_often_producers_are_looked_at(
    tmp_path: Path, expiration_ms: int, settling_ms: int
) -> None:
    settings = ParticipantSettings(
        data_dir=tmp_path,
        controller="coordinator-0:1",
        producer_id_expiration_ms=expiration_ms,
        producer_id_expiration_check_interval_ms=1_000,
    )
    options = settings.expiry_options()
    assert (options.interval_ms, options.settling_ms) == (1_000, settling_ms)
