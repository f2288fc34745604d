"""Syntax trees become logical plans."""
