"""The main job: a year of pizza orders becomes income, exactly once, while processes are killed."""
