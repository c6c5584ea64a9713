"""Round trips: commands that are asked for at the same moment go out together, which costs a quarter of going alone.

Promises that each command is its own (nothing is atomic over two of them), that it goes out at once when nothing is
under way, and that an answer or an error reaches whoever asked. Refuses nothing; Unavailable when Redis is away. Whoever
stops waiting before his command went out has not asked.
"""

import asyncio
from collections import deque
from typing import Any

from redis import exceptions
from redis.asyncio import Redis

from sellerwatch.domain.errors import Unavailable

Word = bytes | str | int
UNDER_WAY_MAX, AT_ONCE = 2, 128
_AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
)
_AWAY_WORDS = ("AWAY", "BUSY", "LOADING", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "NOAUTH", "WRONGPASS", "NOPERM")


class Trips:
    def __init__(self, client: Redis) -> None:
        self._client = client
        self._waiting: deque[tuple[tuple[Word, ...], asyncio.Future[Any]]] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    async def ask(self, *command: Word) -> Any:
        """The answer: nested lists of bytes and int. Raises what Redis says of it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((command, answer))
        if len(self._under_way) < UNDER_WAY_MAX:
            trip = loop.create_task(self._go())
            self._under_way.add(trip)
            trip.add_done_callback(self._under_way.discard)
        return await answer

    async def _go(self) -> None:
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            asked = [each for each in taken if not each[1].done()]
            try:
                answers = await self._answers([command for command, _ in asked])
            except BaseException as error:
                _tell(asked, [error] * len(asked))
                if not isinstance(error, Exception):
                    raise
            else:
                _tell(asked, answers)

    async def _answers(self, commands: list[tuple[Word, ...]]) -> list[Any]:
        if len(commands) == 1:
            return [await self._client.execute_command(*commands[0])]  # type: ignore[no-untyped-call]
        together = self._client.pipeline(transaction=False)
        for command in commands:
            together.execute_command(*command)
        return await together.execute(raise_on_error=False)


def _tell(asked: list[tuple[tuple[Word, ...], asyncio.Future[Any]]], answers: list[Any]) -> None:
    for (_, waits), answer in zip(asked, answers, strict=True):
        if waits.done():
            continue
        if isinstance(answer, asyncio.CancelledError):
            waits.cancel()
        elif isinstance(answer, BaseException):
            waits.set_exception(_meaning(answer))
        else:
            waits.set_result(answer)


def _meaning(error: BaseException) -> BaseException:
    """Away, or a mistake of ours, which is raised as it is."""
    is_away = isinstance(error, _AWAY) and not isinstance(error, exceptions.NoScriptError)
    if not is_away and isinstance(error, exceptions.ResponseError):
        is_away = str(error).startswith(_AWAY_WORDS)
    if not is_away:
        return error
    meant = Unavailable(f"redis: {error}")
    meant.__cause__ = error
    return meant
