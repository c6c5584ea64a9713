"""Doors: they parse, call one flow and report. What happens is decided further down."""
