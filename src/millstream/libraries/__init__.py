"""Libraries on top of the DataStream API."""
