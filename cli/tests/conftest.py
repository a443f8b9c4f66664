"""Fixtures of the command line's tests: what ``cli_fixtures`` defines."""

from cli_fixtures import bootstrap, semel, topic, user_folders

__all__ = ["bootstrap", "semel", "topic", "user_folders"]
