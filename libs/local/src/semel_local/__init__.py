"""A whole Semel cluster in one process, for users' tests."""
