"""Checks of `k8s/` without a cluster: rules for the rendered objects, a mistake for each rule."""
