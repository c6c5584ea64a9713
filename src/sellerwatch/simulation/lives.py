"""Processes that die, stand still and come back, inside one event loop.

    alive ── stand_still(seconds) ─▶ still ── its time is over ─▶ alive
      └────────── kill ──────────▶ dead: nothing comes back to it, for ever

`kill -9` means never to resume. A cancelled task runs its `finally`, and so does one that is collected as garbage: both
hide what a killed process leaves lying about. So every task of a life is driven by one that sees each of its suspensions;
once the life has ended it lets nothing through any more, and keeps hold of what it drives until the world ends (`bury`).
A life that stands still acts later on what it knew before: what a long pause of the garbage collector, or a laptop's lid, does.
"""

import asyncio
import warnings
from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_WHOSE: ContextVar["Life | None"] = ContextVar("whose", default=None)
_BURIALS_MAX = 20
Suspended: TypeAlias = asyncio.Future[Any]


class Buried(BaseException):
    """Ends what a dead process left, when the world ends. Nothing is done by it any more."""


class Life:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.still_until = 0.0
        self.died = asyncio.Event()
        self._driven: dict[_Driven, None] = {}

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """The root of this process; every task that it makes is of the same life."""
        whose = _WHOSE.set(self)
        try:
            return asyncio.get_running_loop().create_task(coroutine, name=self.name)
        finally:
            _WHOSE.reset(whose)

    def kill(self) -> None:
        self.is_dead = True
        self.died.set()

    def stand_still(self, seconds: float) -> None:
        self.still_until = max(self.still_until, asyncio.get_running_loop().time() + seconds)

    def bury(self) -> None:
        """When nobody looks any more: end the frames that are left, whatever their `finally` would like to do."""
        self.kill()
        with warnings.catch_warnings():
            # What was about to be awaited never is.
            warnings.simplefilter("ignore", RuntimeWarning)
            for driven in list(self._driven):
                driven.close()
            self._driven.clear()

    def keep(self, driven: "_Driven") -> None:
        self._driven[driven] = None

    def let_go(self, driven: "_Driven") -> None:
        self._driven.pop(driven, None)


async def death(life: Life) -> None:
    """Here and now: what called this is never answered."""
    life.kill()
    await asyncio.get_running_loop().create_future()


async def stillness(life: Life, seconds: float) -> None:
    """Here and now: what called this goes on after it."""
    life.stand_still(seconds)
    await asyncio.sleep(0)  # noqa: TID251 - the driver sees a suspension


def whose() -> Life | None:
    """Whose code runs just now; None: the world's own."""
    return _WHOSE.get()


def driven_tasks(
    loop: asyncio.AbstractEventLoop, coroutine: Any, *, context: Context | None = None, **named: Any
) -> "asyncio.Task[Any]":
    """A task factory: what a life begins is driven by it."""
    life = _WHOSE.get() if context is None else context.get(_WHOSE)
    if life is None:
        return asyncio.Task(coroutine, loop=loop, context=context, **named)
    task: asyncio.Task[Any] = asyncio.Task(_Driven(coroutine, life), loop=loop, context=context, **named)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - the dead are pending for ever
    return task


class _Driven(Coroutine[Any, Any, Any]):
    """One coroutine of a life, resumed only while it lives."""

    __slots__ = ("_coroutine", "_held", "_life")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], life: Life) -> None:
        self._coroutine, self._life = coroutine, life
        self._held: BaseException | None = None
        life.keep(self)

    def send(self, value: Any) -> Any:
        if waiting := self._not_now():
            return waiting
        if self._held is not None:
            held, self._held = self._held, None
            return self._resumed(lambda: self._coroutine.throw(held))
        return self._resumed(lambda: self._coroutine.send(value))

    def throw(self, error: Any, *_: Any) -> Any:
        if waiting := self._not_now():
            self._held = error
            return waiting
        return self._resumed(lambda: self._coroutine.throw(error))

    def close(self) -> None:
        for _ in range(_BURIALS_MAX):
            try:
                self._coroutine.throw(Buried())
            except BaseException:  # noqa: BLE001 - it is over, whatever it says
                break
        with suppress(RuntimeError):
            self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError("a task drives it")

    def _resumed(self, step: Any) -> Any:
        try:
            return step()
        except BaseException:
            self._life.let_go(self)
            raise

    def _not_now(self) -> Suspended | None:
        life, loop = self._life, asyncio.get_running_loop()
        if life.is_dead:
            return _suspended(loop.create_future())
        if life.still_until > loop.time():
            waiting = loop.create_future()
            loop.call_at(life.still_until, _set, waiting)
            return _suspended(waiting)
        return None


def _suspended(future: Suspended) -> Suspended:
    """As a task wants to be told of what is waited for."""
    future._asyncio_future_blocking = True  # noqa: SLF001
    return future


def _set(future: Suspended) -> None:
    if not future.done():
        future.set_result(None)
