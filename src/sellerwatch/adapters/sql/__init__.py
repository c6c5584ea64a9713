"""The database: the only room that speaks SQL."""
