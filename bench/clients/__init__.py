"""Clients of Semel and of Apache Kafka for the same workloads, each a process of its own."""
