"""Semel's own client, `aiosemel`: the same code for `make bench` and `make bench-kafka`."""
