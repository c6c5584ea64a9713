"""What is true: values in, values out. No clock, no chance, no I/O; the standard library only."""
