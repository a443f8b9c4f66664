"""Checks recorded histories of sends, polls and transactions against Semel's guarantees.

`history` defines the recorded events, `check` holds them to the rules of `violations`.
"""
