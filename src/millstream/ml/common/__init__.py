"""What several stages share."""
