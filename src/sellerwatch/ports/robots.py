"""Understanding a robots.txt, and remembering it. What it means for us is `domain.robots`."""

from typing import Protocol

from sellerwatch.domain.robots import RobotsFile


class Rules(Protocol):
    """What one robots.txt says to us."""

    @property
    def seconds_between(self) -> float:
        """How long it wants us to wait between two requests (Crawl-delay, Request-rate), up to a day; 0: no wish."""

    def allows(self, url: str) -> bool:
        """By the longest rule that matches path and query, Allow before Disallow; robots.txt itself always."""


class RobotsReader(Protocol):
    def rules(self, text: str) -> Rules:
        """What the text says to `domain.robots.CRAWLER`, or else to `*`. Hostile input: what can't be read as a rule
        is passed over, no text is refused, and time and memory grow with its length only."""


class RobotsKept(Protocol):
    """One row for each origin."""

    def get(self, origin: str) -> RobotsFile | None: ...
    def lock(self, origin: str) -> RobotsFile | None: ...
    def save(self, file: RobotsFile) -> None:
        """Written anew, or for the first time."""
