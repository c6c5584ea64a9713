"""Two families of errors, two reactions.

    SellerwatchError
    ├── Refused            the rules say no: told to the caller, never retried
    │   ├── WrongVerb        an aggregate in this state has no such verb
    │   ├── Invalid          a value that breaks the rules of its field
    │   ├── Unknown          nothing of that name exists
    │   └── Conflict         true already, or in the way
    └── Trouble            the world failed: kept, retried with backoff
        ├── Unreadable       an answer or a value that is not what it should be
        └── Unavailable      nobody answered, or only to say "later"

A refusal is somebody's mistake and says what would be right; trouble is nobody's and says what is known.
"""


class SellerwatchError(Exception):
    """The root: everything this system raises on purpose."""


_DONE = {
    "again": "be tried again",
    "release": "be released",
    "discard": "be discarded",
    "suspend": "be suspended",
    "recover": "be brought back",
    "unblock": "be unblocked",
    "cancel": "be cancelled",
}
"""Verbs that people use, as it is told to them that the state does not allow one."""


class Refused(SellerwatchError):
    """The rules say no."""


class WrongVerb(Refused):
    """An aggregate was told to do what its state does not allow."""

    def __init__(self, aggregate: str, identity: str, state: str, verb: str) -> None:
        super().__init__(f"{aggregate} {identity} is {state}: it cannot {_DONE.get(verb, verb)}")
        self.aggregate, self.identity, self.state, self.verb = aggregate, identity, state, verb


class Invalid(Refused):
    """A value breaks the rules of its field."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        try:
            shown = repr(value)
        except ValueError:  # a number of thousands of digits can't be written down
            shown = f"a huge {type(value).__name__}"
        super().__init__(f"{field}: {shown if len(shown) <= 80 else shown[:77] + '...'} is not {expected}")
        self.field, self.value, self.expected = field, value, expected


class Unknown(Refused):
    """Nothing of that name exists."""

    def __init__(self, thing: str, name: object) -> None:
        super().__init__(f"no {thing} {name}")
        self.thing, self.name = thing, name


class Conflict(Refused):
    """It is true already, or something open stands in the way."""

    def __init__(self, code: str, message: str, identity: str | None = None) -> None:
        super().__init__(message)
        self.code, self.identity = code, identity


class Trouble(SellerwatchError):
    """The world failed; nothing of ours is wrong."""


class Unreadable(Trouble):
    """An answer, or a value in it, is not what it should be: an error, never a null, a zero or an empty page."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where, self.problem = where, problem


class Unavailable(Trouble):
    """Nobody answered, or only to say "later"."""
