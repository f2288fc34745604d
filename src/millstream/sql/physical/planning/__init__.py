"""Logical nodes become physical ones: a module for each family."""
