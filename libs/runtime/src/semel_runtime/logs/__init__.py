"""The log of a service: its setup, its output and its rate limit."""
