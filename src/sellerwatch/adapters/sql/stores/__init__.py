"""What is remembered, by what it is about: each store speaks through the session of one transaction."""
