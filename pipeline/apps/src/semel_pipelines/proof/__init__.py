"""A year of orders through both pipelines, while everything that can be killed is killed."""
