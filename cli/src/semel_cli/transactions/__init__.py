"""`semel transactions`."""
