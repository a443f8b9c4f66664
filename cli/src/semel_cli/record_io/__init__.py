"""`semel produce` and `semel consume`."""
