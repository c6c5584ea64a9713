"""The bells of a town: what saves the looking in vain, which is all that a quiet day of many processes would consist of.

A process does not hear the others' bells: it looks by itself every few seconds. Here it looks at a moment within those
seconds when another one rang, and else seldom (`SELDOM_SECONDS`): who died before he rang is found out by that.

    awake ── hush: nothing is open ─▶ quiet ── anybody rings, or the town begins something ─▶ awake

While it is quiet nobody's looking can find anything, and whoever looks by himself does so once in `QUIET_SECONDS`;
awake again everybody looks when he would have.
"""

import asyncio
from typing import Final

from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.sandbox.chance import Chance
from sellerwatch.simulation.lives import Life
from sellerwatch.wiring import House

LOOK_SECONDS: Final = 15
SELDOM_SECONDS: Final = 600.0
QUIET_SECONDS: Final = 8 * 3600.0
_IDLE_SECONDS: Final = 30.0
"""Who waits for less is about to do something."""
_WORK: Final = frozenset({"plan", "relay", "queue:tasks", "absorb", "delist", "deliver", "announce", "due"})
_ROOM: Final = "pool"
"""Work for anybody, and room for work: what is rung for besides is a process' own affair."""


class Bells:
    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed, "bells")
        self._bells: dict[str, _Bell] = {}
        self._is_quiet = False

    def join(self, house: House, life: Life | None = None) -> None:
        """This house's bell is heard by the others, and it hears theirs while it lives."""
        bell = house.bell
        assert isinstance(bell, AsyncBell)
        self._bells[house.owner] = _Bell(self, bell, life)

    def hush(self) -> None:
        self._is_quiet = True

    def rouse(self) -> None:
        if not self._is_quiet:
            return
        self._is_quiet = False
        for bell in self._living():
            bell.rouse()

    @property
    def is_quiet(self) -> bool:
        return self._is_quiet

    def rang(self, by: "_Bell", name: str) -> None:
        if name in _WORK:
            self.rouse()
        if self._is_quiet or name not in _WORK | {_ROOM}:
            return
        for bell in self._living():
            if bell is not by and bell.life:
                bell.hear(name, self._chance.between(0, LOOK_SECONDS * 1000) / 1000)

    def _living(self) -> "list[_Bell]":
        self._bells = {owner: bell for owner, bell in self._bells.items() if not (bell.life and bell.life.is_dead)}
        return list(self._bells.values())


class _Bell:
    """One house's: an ordinary one, whose ringing carries and whose long waits can be made longer."""

    def __init__(self, town: Bells, bell: AsyncBell, life: Life | None) -> None:
        self._town, self.life = town, life
        self._ring, self._wait = bell.ring, bell.wait
        self._to_be_heard: set[str] = set()
        self._drawn_out: dict[str, float] = {}
        """Who waits longer than he wanted to: by name, until when he wanted to."""
        bell.ring, bell.wait = self.ring, self.wait  # type: ignore[method-assign]

    def ring(self, name: str) -> None:
        self._ring(name)
        self._town.rang(self, name)

    async def wait(self, name: str, seconds: float) -> bool:
        if not self._town.is_quiet or seconds < _IDLE_SECONDS:
            return await self._wait(name, seconds)
        self._drawn_out[name] = asyncio.get_running_loop().time() + seconds
        try:
            return await self._wait(name, max(seconds, QUIET_SECONDS))
        finally:
            self._drawn_out.pop(name, None)

    def hear(self, name: str, seconds: float) -> None:
        if name not in self._to_be_heard:
            self._to_be_heard.add(name)
            asyncio.get_running_loop().call_later(seconds, self._heard, name)

    def rouse(self) -> None:
        loop = asyncio.get_running_loop()
        for name, wanted in self._drawn_out.items():
            loop.call_at(max(loop.time(), wanted), self._ring, name)

    def _heard(self, name: str) -> None:
        self._to_be_heard.discard(name)
        self._ring(name)
