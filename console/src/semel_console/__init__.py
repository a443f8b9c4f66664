"""The console of Semel."""
