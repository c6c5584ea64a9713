"""Virtual time, as stories in tests want it: what is ready first runs first."""

from sellerwatch.simulation.loop import BEGINNING, VirtualClock, run_virtually

__all__ = ["BEGINNING", "VirtualClock", "run_virtually"]
