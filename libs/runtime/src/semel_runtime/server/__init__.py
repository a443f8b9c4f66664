"""Serving: handlers, and the two transports (unary calls and frame streams) over the same handlers."""
