"""Fixtures of the pipeline's tests: what ``pipeline_fixtures`` defines."""

from pipeline_fixtures import semel, spark

__all__ = ["semel", "spark"]
