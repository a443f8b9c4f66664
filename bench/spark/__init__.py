"""Spark's pipelines on Semel, beside the same pipelines on Apache Kafka."""
