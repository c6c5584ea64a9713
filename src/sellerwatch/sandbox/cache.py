"""Rendered documents, kept as long as they fit: the least recently used leave first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable


class Cache:
    """Bytes by key, together never more than the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self.size = 0

    def get(self, key: Hashable, render: Callable[[], bytes]) -> bytes:
        """What is kept under the key, else what `render` makes."""
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            return known
        body = render()
        if len(body) <= self._limit:
            self._kept[key] = body
            self.size += len(body)
            while self.size > self._limit:
                self.size -= len(self._kept.popitem(last=False)[1])
        return body
