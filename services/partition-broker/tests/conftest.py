"""Fixtures of the broker's tests: what ``broker_fixtures`` defines."""

from broker_fixtures import broker, volume

__all__ = ["broker", "volume"]
