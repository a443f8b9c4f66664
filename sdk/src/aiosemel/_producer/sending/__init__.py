"""Batches go to brokers: requests, answers and refusals."""
