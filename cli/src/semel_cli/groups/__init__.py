"""`semel groups`."""
