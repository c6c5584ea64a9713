"""Revisions, in two lines; see the package above."""
