"""Regression, under Flink ML's module names."""
