"""The API of stateful functions: addressable functions with state that send messages to one another."""
