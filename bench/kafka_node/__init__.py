"""A Kafka broker of one node, as a process; what it needs comes from Maven."""
