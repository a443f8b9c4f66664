"""Limits of a server, and the share that each caller has of them."""
