"""Semel's partition broker: the logs, and the filter of committed reads."""
