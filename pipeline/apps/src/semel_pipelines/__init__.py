"""Pipelines on Semel and Spark, and the proof that they count each record once."""
