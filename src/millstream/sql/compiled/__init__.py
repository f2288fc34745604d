"""Compiled plans: the stored form of a physical plan, and its identity across releases."""
