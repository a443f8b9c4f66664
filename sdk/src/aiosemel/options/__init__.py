"""Options of clients, consumers and pools, with Kafka's names and defaults."""
