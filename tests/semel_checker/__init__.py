"""Checks recorded histories of sends, polls and transactions against what Semel promises.

`history` says what is recorded, `check` holds it to the rules of `violations`.
"""
