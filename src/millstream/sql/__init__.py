"""SQL and table programs become transformations."""
