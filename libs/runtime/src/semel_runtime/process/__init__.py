"""The process of a service: its end, its files, its threads and its garbage collection."""
