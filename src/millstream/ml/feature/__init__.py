"""Feature engineering, under Flink ML's module names."""
