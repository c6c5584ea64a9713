"""Claims: who works on a row, and until when nobody else does."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """Who works on a row, and until when nobody else does."""

    owner: str
    until: datetime
    at: datetime
