"""Serving: handlers, and the two transports over them, unary calls and frame streams."""
