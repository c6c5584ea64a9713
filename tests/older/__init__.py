"""What releases with an older schema say to the database; see `capture` and `test_older_statements`."""
