"""Queries of bounded tables in Spark's SQL, for its optimizer."""
