"""What all tests share."""

from hypothesis import HealthCheck, settings

# No test asserts how long anything takes: a slow machine finds no mistakes.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
