"""Who uses what: the only room that knows every tool; one place to build the house and to close it."""
