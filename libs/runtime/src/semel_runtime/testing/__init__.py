"""Fakes for tests and simulation: deterministic, without threads and real time."""
