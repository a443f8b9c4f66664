"""The consumer: positions, fetches and polls."""
