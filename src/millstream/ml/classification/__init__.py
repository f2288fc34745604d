"""Classification, under Flink ML's module names."""
