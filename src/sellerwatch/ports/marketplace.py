"""Asking the marketplace, and understanding what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sellerwatch.domain.documents import Document, DocumentKind
from sellerwatch.domain.identities import SealedToken
from sellerwatch.ports.pool import Lease
from sellerwatch.ports.wire import NoAnswerWhy, RawReply


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, of whatever status. Its body is hostile input."""

    status: int
    body: bytes
    retry_after: timedelta | None
    duration_ms: int
    redirect_to: str | None = None
    """A redirect within the host, not followed: following it is a request of its own, on a lease of its own."""
    content_type: str = ""

    @property
    def outcome(self) -> str:
        """In one word, for counting."""
        return str(self.status)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    why: NoAnswerWhy
    detail: str
    duration_ms: int

    @property
    def outcome(self) -> str:
        """In one word, for counting."""
        return self.why.value


@dataclass(frozen=True, slots=True)
class Issued:
    """What asking for a token gave: a token, or the answer that held none."""

    token: SealedToken | None
    answer: Answer | NoAnswer


class Marketplace(Protocol):
    """Makes exactly one request per call, as the identity of the lease; retries, budgets and waiting are the caller's.

    Nothing but the configured host is ever contacted. A request ends a second before its lease's deadline at the
    latest, a slow body included. Plaintext tokens live only in here.
    """

    async def fetch(self, url: str, lease: Lease) -> Answer | NoAnswer:
        """Invalid, before anything is sent, when the lease holds no token or the url is not the marketplace's;
        Unreadable, likewise, when its token can't be opened."""

    async def issue_token(self, lease: Lease) -> Issued: ...

    async def robots(self, url: str, lease: Lease) -> Answer | NoAnswer:
        """robots.txt, or where it was redirected to, asked for by a visitor without a token; Invalid as in `fetch`."""


class Transport(Protocol):
    """Sends one GET as it is told, and nothing by itself: no redirect followed, no cookie kept, no second try.

    Invalid, before anything is sent, when the url is not of the origin that it was made for.
    """

    async def send(
        self, url: str, headers: Mapping[str, str], *, connect_timeout: float, total_seconds: float, max_bytes: int
    ) -> RawReply:
        """The reply, inflated. NoReply when nothing usable came, after `total_seconds` at the latest, a slow body included.

        A status that is no success is told even when its body can't be had: the body is then empty.
        """


class Vault(Protocol):
    """Keeps secrets for a row; another row can't open them."""

    def seal(self, plaintext: str, row: str) -> str: ...

    def open(self, sealed: str, row: str) -> str:
        """Unreadable when it was not sealed for this row, or its key is gone."""

    def fingerprint(self, plaintext: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a list, as it stood in the page."""

    item_no: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class BadEntry:
    """An item of a list that can't be told from the others: kept with its error."""

    raw: bytes
    problem: str


@dataclass(frozen=True, slots=True)
class Listing:
    entries: list[Entry]
    bad: list[BadEntry]
    count: int | None
    """The shop's total, as a MINI_SHOP page says it."""
    next_path: str | None
    """Path and query of the next SEARCH page."""
    ended: bool
    """A SEARCH list ends with a page that has neither items nor a next one."""
    unknown: tuple[str, ...] = ()
    """Names of its top level that nobody declared."""


class Reader(Protocol):
    """Understands answers. Unreadable is its only error, whatever the bytes; it never returns a partial truth."""

    def listing(self, kind: str, body: bytes) -> Listing:
        """A list page (SEARCH, MINI_SHOP). One bad item costs neither the page nor the next link."""

    def verify(self, kind: str, item_no: int, body: bytes) -> None:
        """Refuses what is not a DETAIL or OPTION answer, and another item's detail."""

    def document(self, kind: DocumentKind, item_no: int, raw: bytes) -> Document:
        """The whole document in normal form, or Unreadable naming the field."""
