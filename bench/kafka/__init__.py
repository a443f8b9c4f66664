"""Semel beside Apache Kafka: the same work, taking turns: `make bench-kafka`."""
