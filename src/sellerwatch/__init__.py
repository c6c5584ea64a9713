"""Sellerwatch."""
