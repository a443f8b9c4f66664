"""What is checked of `k8s/` without a cluster: rules over what is rendered, and that each bites."""
