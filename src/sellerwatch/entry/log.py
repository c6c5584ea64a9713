"""Logs: one line an event, in colour on a terminal and as JSON elsewhere, always to stderr.

Promises: no configured secret, sealed token, bearer token or password in an address leaves through here, whoever wrote
the line; the filter sits at the root, where the logs of libraries pass too. A value can't forge a line or paint the
terminal: line breaks and control characters are written as escapes, a stack is set in behind a bar. Every line that is
written while a task is worked on, ours or a library's, says of which task, seller and trace it is.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final, TextIO

import orjson
import structlog
from pydantic import SecretStr
from structlog.typing import EventDict, Processor, WrappedLogger

from sellerwatch.domain.products import shown_at
from sellerwatch.domain.tasks import Task
from sellerwatch.domain.traces import root, trace_id
from sellerwatch.ports.time import Clock
from sellerwatch.settings import Settings
from sellerwatch.settings.forms import Secret

HIDDEN: Final = "***"
SECRET_MIN: Final = 6
"""Shorter ones would hide half of every line."""
VALUE_MAX: Final = 4000
LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
NOISY: Final = ("aiobotocore", "alembic", "asyncio", "botocore", "sqlalchemy", "uvicorn")

_SEALED = re.compile(r"v1\.[A-Za-z0-9_-]{1,32}\.[A-Za-z0-9+/=]{40,}")
_BEARER = re.compile(r"(?i)\bbearer\s+[^\s\"',;]+")
_COMPACT = re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_SIGNING = re.compile(r"whsec_[A-Za-z0-9+/=]+")
_LOGIN = re.compile(r"(://)[^\s/@]*@")
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_PLAIN = re.compile(r"[^\s\"=\\]+")
_STACK = "exception"
_TASK: ContextVar[Task | None] = ContextVar("task", default=None)


def about(task: Task) -> None:
    """From here on, in this asyncio task and what it begins, every line is about this one."""
    _TASK.set(task)


def ids_of(task: Task) -> dict[str, str]:
    return {"task_id": task.task_id, "seller_id": task.seller_id, "trace_id": trace_id(root(task.task_id))}


def set_up(settings: Settings, clock: Clock, stream: TextIO | None = None) -> None:
    """From here on every log of this process is written as the settings say."""
    stream = stream or sys.stderr
    is_console = settings.log_format == "console" or (settings.log_format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _with_task,
            structlog.processors.add_log_level,
            _timed(clock),
            structlog.processors.format_exc_info,
            concealing(secrets_of(settings)),
            tame,
            _console(is_painted=stream.isatty()) if is_console else _json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.log_level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(LEVELS[settings.log_level])
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """What must never be seen, the longest first: the secret settings, and each key in them."""
    found: set[str] = set()
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            secret = value.get_secret_value()
            found |= {secret, *(part.strip() for part in secret.split(","))}
            found |= {part.partition(":")[2] for part in secret.split(",")}
        elif isinstance(value, str) and any(isinstance(mark, Secret) for mark in field.metadata):
            found.add(value)
    return tuple(sorted((each for each in found if len(each) >= SECRET_MIN), key=len, reverse=True))


def concealing(secrets: Iterable[str]) -> Processor:
    """A processor that takes out these secrets, and whatever looks like one."""
    known = [secret for each in secrets for secret in dict.fromkeys((each, each.replace("\n", "\\n")))]
    exact = re.compile("|".join(map(re.escape, known))) if known else None

    def conceal(text: str) -> str:
        if exact is not None:
            text = exact.sub(HIDDEN, text)
        text = _SEALED.sub("v1." + HIDDEN, text)
        text = _BEARER.sub("Bearer " + HIDDEN, text)
        text = _COMPACT.sub(HIDDEN, text)
        text = _SIGNING.sub("whsec_" + HIDDEN, text)
        return _LOGIN.sub(r"\1" + HIDDEN + "@", text)

    def process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {conceal(str(name)): _told(value, conceal) for name, value in event.items()}

    return process


def tame(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A processor: control characters and what turns the direction of writing become escapes."""
    return {
        _tamed(name): _tamed_stack(value) if name == _STACK else _told(value, _tamed) for name, value in event.items()
    }


class _Bridge(logging.Handler):
    """What libraries log, on the same way as ours."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger().bind(library=record.name)
        log.log(max(record.levelno, logging.DEBUG), record.getMessage(), exc_info=record.exc_info or None)


def _told(value: object, change: Callable[[str], str]) -> object:
    """The value with every text in it changed; what is no plain value is its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): _told(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_told(each, change) for each in value]
    return change(str(value))


def _tamed(text: str) -> str:
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text[:VALUE_MAX])


def _tamed_stack(stack: object) -> str:
    return "\n".join(_tamed(line) for line in str(stack).splitlines())


def _with_task(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # Made up when a line is written: most tasks end without one.
    task = _TASK.get()
    return event if task is None else {**ids_of(task), **event}


def _timed(clock: Clock) -> Processor:
    def process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {"at": shown_at(clock.now()), **event}

    return process


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    first = {name: event[name] for name in ("at", "level", "event") if name in event}
    return orjson.dumps({**first, **event}, default=str).decode()


def _console(*, is_painted: bool) -> Processor:
    paint = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "31;1"} if is_painted else {}

    def painted(text: str, code: str | None) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if code else text

    def process(_: WrappedLogger, __: str, event: EventDict) -> str:
        at, level, what = (str(event.pop(name, "")) for name in ("at", "level", "event"))
        stack = event.pop(_STACK, None)
        values = " ".join(
            f"{painted(name, '36' if is_painted else None)}={_shown(value)}" for name, value in event.items()
        )
        clock = painted(at[11:19], "2" if is_painted else None)
        line = f"{clock} {painted(f'{level:<8}', paint.get(level))} {what}  {values}".rstrip()
        return line if stack is None else line + "".join(f"\n    | {each}" for each in str(stack).splitlines())

    return process


def _shown(value: Any) -> str:
    if isinstance(value, str):
        # What could be taken for another value, or for the end of this one, is set in quotes with its own escaped.
        return value if _PLAIN.fullmatch(value) else orjson.dumps(value).decode()
    return orjson.dumps(value, default=str).decode()
