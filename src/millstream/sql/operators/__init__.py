"""The operators of tables, one per file."""
