"""Real servers for tests: private, on a free port of this machine, gone with everything they kept when the test ends."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STARTS_WITHIN_SECONDS = 10.0
AWS_STARTS_WITHIN_SECONDS = 60.0
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


AWS_PYTHON = Path(__file__).parents[1] / ".venv-ministack" / "bin" / "python"
AWS_ACCOUNT, AWS_REGION = "000000000000", "ap-northeast-2"
AWS_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_DEFAULT_REGION": AWS_REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Aws:
    """SQS and EventBridge, by ministack."""

    port: int
    process: subprocess.Popen
    ahead: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def advance(self, seconds: float) -> None:
        """Its clock goes so far ahead; nobody waits."""
        self.ahead += seconds
        line = f"{self.ahead}\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == line

    def is_up(self) -> bool:
        """Whether it comes to answer within a while."""
        for _ in range(int(AWS_STARTS_WITHIN_SECONDS / 0.05)):
            if self.process.poll() is not None:
                return False
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2) as answer:
                return answer.status == 200
            time.sleep(0.05)
        return False


@contextmanager
def an_aws(port: int | None = None) -> Iterator[Aws]:
    """A ministack with nothing in it, that keeps nothing."""
    assert AWS_PYTHON.exists(), "ministack is not installed: `make servers`"
    with tempfile.TemporaryDirectory(prefix="sellerwatch-aws-") as folder:
        server = _started_aws(folder, port)
        try:
            yield server
        finally:
            server.process.kill()
            server.process.communicate()


def _started_aws(folder: str, given: int | None) -> Aws:
    program, log = Path(__file__).with_name("aws_server.py"), Path(folder) / "log"
    for _ in range(TRIES):
        port = given or a_free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "TMPDIR": folder,
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": AWS_REGION,
            "LOG_LEVEL": "ERROR",
        }
        with log.open("wb") as told:
            process = subprocess.Popen(
                [AWS_PYTHON, "-B", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                env=environment,
                cwd=folder,
                text=True,
            )
        server = Aws(port, process)
        if server.is_up():
            return server
        process.kill()
        process.communicate()
    raise AssertionError(f"ministack does not start:\n{log.read_text()}")


def a_free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
