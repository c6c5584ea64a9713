"""The marketplace, as it is reached and as it is read."""
