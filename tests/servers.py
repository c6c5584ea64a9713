"""Real servers for tests: private, on a free port of this machine, gone with everything they kept when the test ends."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STARTS_WITHIN_SECONDS = 10.0
TRIES = 3


@dataclass(frozen=True)
class Redis:
    port: int
    process: subprocess.Popen

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def say(self, *words: str) -> bytes:
        """One command, without a client; its answer as it came, for small answers."""
        command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(command.encode())
            return connection.recv(65536)

    def says(self, answer: bytes, *words: str) -> bool:
        """Whether it comes to answer so within a while; False at once when it is gone."""
        for _ in range(int(STARTS_WITHIN_SECONDS / 0.02)):
            if self.process.poll() is not None:
                return False
            with suppress(OSError):
                if answer in self.say(*words):
                    return True
            time.sleep(0.02)
        return False


@contextmanager
def a_redis(*options: str) -> Iterator[Redis]:
    """A redis-server with nothing in it, that keeps nothing."""
    program = shutil.which("redis-server")
    assert program, "there is no redis-server on this machine: install one (`apt-get install redis-server`)"
    with tempfile.TemporaryDirectory(prefix="sellerwatch-redis-") as folder:
        server = _started(program, folder, options)
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait()


def _started(program: str, folder: str, options: tuple[str, ...]) -> Redis:
    log = Path(folder) / "log"
    for _ in range(TRIES):
        port = a_free_port()
        here = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--logfile", str(log))
        command = [program, *here, "--save", "", "--appendonly", "no", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Redis(port, process)
        if server.says(b"+PONG", "PING"):
            return server
        process.kill()
        process.wait()
    raise AssertionError(f"redis-server does not start:\n{log.read_text() if log.exists() else ''}")


def a_free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
