"""`make k8s-test`: manifests, images and the main job on a real cluster, under its faults."""
