"""Addressable functions with state that send messages to one another: what user code sees of them."""
