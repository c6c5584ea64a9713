"""What the terminal shows: texts made safe, tables, JSON, the status, progress. Decides nothing and asks nobody."""
