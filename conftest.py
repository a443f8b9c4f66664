"""What all tests share."""

import gc

from hypothesis import HealthCheck, settings

# No test asserts how long anything takes: a slow machine finds no mistakes.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Keep what thousands of tests consist of out of every collection of garbage from here on."""
    gc.collect()
    gc.freeze()
