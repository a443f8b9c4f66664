"""Calls to the cluster: metadata, routes, retries and throttling."""
