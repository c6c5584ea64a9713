"""Who uses what: the only room that knows every tool. One place to build the house from its settings, and to close it.

Everything is an argument: another clock, chance or transport makes the same house run on virtual time against a
marketplace in the same process.
"""

from sellerwatch.wiring.building import build, opened
from sellerwatch.wiring.house import House, Outside, SchemaBehind

__all__ = ["House", "Outside", "SchemaBehind", "build", "opened"]
