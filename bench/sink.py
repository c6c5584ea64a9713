"""A product server in a process of its own that answers at once, and says in the end what it saw.

It parses nothing while it is measured against but the item and the version that stand at the head of each event.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ABOUT = re.compile(rb'"version":(\d+),"itemNo":(\d+)')


class Seen:
    def __init__(self) -> None:
        self.events = self.out_of_order = self.unreadable = 0
        self.versions: dict[bytes, int] = {}

    def note(self, body: bytes) -> None:
        self.events += 1
        found = _ABOUT.search(body)
        if found is None:
            self.unreadable += 1
            return
        version, item = int(found[1]), found[2]
        self.out_of_order += version <= self.versions.get(item, 0)
        self.versions[item] = version


class Sink(asyncio.Protocol):
    def __init__(self, seen: Seen) -> None:
        self._seen, self._kept = seen, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._kept += data
        while (end := self._kept.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._kept, 0, end)
            until = end + 4 + (int(length[1]) if length else 0)
            if len(self._kept) < until:
                return
            self._seen.note(self._kept[end + 4 : until])
            self._kept = self._kept[until:]
            self._transport.write(_ANSWER)


@contextmanager
def sink() -> Iterator[tuple[str, dict]]:
    """Its address, and, once the block has ended, what it saw."""
    command = [sys.executable, "-m", "bench.sink"]
    seen: dict = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        yield url, seen
        process.stdin.close()
        seen.update(json.loads(process.stdout.readline()))


async def _serve() -> None:
    seen = Seen()
    server = await asyncio.get_running_loop().create_server(lambda: Sink(seen), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/events\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    told = {"events": seen.events, "outOfOrder": seen.out_of_order, "unreadable": seen.unreadable}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
