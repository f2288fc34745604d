"""Flink's built-in functions, each declared once."""
