"""Calls with a database under ``kill -9`` at every numbered step of theirs.

``steps`` numbers the steps. ``killing`` wraps the layer of the database and the connections to
Semel, and ends its own process at a step. ``application`` is the process that is killed, and
``lanes`` starts it again and again and compares both sides after each kill.
"""
