"""Clustering, under Flink ML's module names."""
