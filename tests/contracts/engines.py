"""The engines a contract of the database's is tried on, each a fixture that gives a Database."""

import pytest

ENGINES = ["sqlite", pytest.param("on_mariadb", marks=pytest.mark.slow, id="mariadb")]
"""The slow one is left to `make test`."""
