"""Real servers for tests: private, on a free port of this machine, gone with everything they kept when the test ends."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pymysql

from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.schema import upgrade

STARTS_WITHIN_SECONDS = 10.0
STOPS_WITHIN_SECONDS = 30.0
AWS_STARTS_WITHIN_SECONDS = 60.0
TRIES = 3
MEMORY = Path("/dev/shm")
"""Where there is one, files need no disk: a schema is made ten times as fast."""
SEEDED_AT = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SEEDED = ("user_agent_pool", "rate_limit_bucket", "circuit_breaker_state")


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
    with tempfile.TemporaryDirectory(prefix="sellerwatch-redis-") as folder:
        server = _started(_redis_program(), folder, options)
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait()


class MortalRedis:
    """A redis-server that is killed, stopped and started again, on the same port; what it saved it may find again."""

    def __init__(self, folder: str) -> None:
        self._program = _redis_program()
        self._folder = folder
        self.now = _started(self._program, folder, ())

    def kill(self) -> None:
        """As a power cut does."""
        self.now.process.kill()
        self.now.process.wait()

    def start(self, *, empty: bool = True) -> None:
        if empty:
            (Path(self._folder) / "dump.rdb").unlink(missing_ok=True)
        self.now = _started(self._program, self._folder, (), self.now.port)

    def pause(self) -> None:
        """It takes connections, and answers nobody."""
        self.now.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.now.process.send_signal(signal.SIGCONT)


@contextmanager
def a_mortal_redis() -> Iterator[MortalRedis]:
    with tempfile.TemporaryDirectory(prefix="sellerwatch-redis-") as folder:
        server = MortalRedis(folder)
        try:
            yield server
        finally:
            server.kill()


def _redis_program() -> str:
    program = shutil.which("redis-server")
    assert program, "there is no redis-server on this machine: install one (`apt-get install redis-server`)"
    return program


def _started(program: str, folder: str, options: tuple[str, ...], port: int | None = None) -> Redis:
    log = Path(folder) / "log"
    for _ in range(TRIES):
        chosen = port or a_free_port()
        here = ("--bind", "127.0.0.1", "--port", str(chosen), "--dir", folder, "--logfile", str(log))
        command = [program, *here, "--save", "", "--appendonly", "no", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Redis(chosen, process)
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
        self._told(f"{self.ahead}\n")

    def _told(self, line: str) -> None:
        self.process.stdin.write(line)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == line

    def fail(self, seconds: float) -> None:
        """So long it answers every question with an error of its own."""
        self._told(f"fail {seconds}\n")

    def forget(self) -> None:
        """As if nothing had ever been made in it."""
        with urllib.request.urlopen(f"{self.url}/_ministack/reset", data=b"", timeout=10) as answer:
            assert answer.status == 200

    def pause(self) -> None:
        """It takes connections, and answers nobody."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def is_up(self) -> bool:
        """Whether it comes to answer within a while."""
        for _ in range(int(AWS_STARTS_WITHIN_SECONDS / 0.05)):
            if self.process.poll() is not None:
                return False
            # A first question makes it load its services, which takes a while where much else is going on.
            first = urllib.request.Request(self.url, b"{}", {"X-Amz-Target": "AmazonSQS.ListQueues"})
            with suppress(OSError), urllib.request.urlopen(first, timeout=AWS_STARTS_WITHIN_SECONDS) as answer:
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


class MariaDb:
    """A mariadbd of our own, with nothing in it but what it is told to make; may be stopped and started again."""

    def __init__(self, folder: Path, options: tuple[str, ...]) -> None:
        self.port = a_free_port()
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen | None = None
        self._made: set[str] = set()
        # Root may run it as root only when told so; anybody else runs it as who they are.
        self._as_root = ["--user=root"] if os.geteuid() == 0 else []
        where = [f"--datadir={folder / 'data'}", *self._as_root]
        made = [str(_program("mariadb-install-db")), "--no-defaults", *where, "--skip-test-db"]
        subprocess.run([*made, "--auth-root-authentication-method=normal"], check=True, capture_output=True)

    def url(self, name: str) -> str:
        # Without TLS, whose preparation costs a client more than a test does.
        return f"mysql://root@127.0.0.1:{self.port}/{name}?ssl_disabled=true"

    def start(self, *, anew: bool = True) -> None:
        """`anew`: on another port when this one is taken."""
        for _ in range(TRIES):
            self._process = subprocess.Popen(self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if self._answers():
                return
            self.stop()
            self.port = a_free_port() if anew else self.port
        log = self._folder / "log-error"
        raise AssertionError(f"mariadbd does not start:\n{log.read_text() if log.exists() else ''}")

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        try:
            self._process.wait(STOPS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def run(self, *statements: str, database: str | None = None) -> list[tuple]:
        """The rows of the last one."""
        with self.session(database) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def session(self, database: str | None = None) -> pymysql.Connection:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            database=database,
            charset="utf8mb4",
            autocommit=True,
            ssl_disabled=True,
        )

    def database(self, name: str) -> str:
        """The address of a database at the newest revision, with its seeds and nothing else; made at first, then
        emptied: that takes a few milliseconds.
        """
        if name not in self._made:
            self._make(name)
            self._made.add(name)
        self._empty(name)
        return self.url(name)

    def without_tables(self, name: str) -> str:
        """The address of a database with nothing in it at all."""
        self.run(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        return self.url(name)

    def _make(self, name: str) -> None:
        self.run(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_seeds")
        made = engine(self.url(name))
        upgrade(made, now=SEEDED_AT)
        made.dispose()
        for table in SEEDED:
            self.run(f"CREATE TABLE {name}_seeds.{table} AS SELECT * FROM {name}.{table}")

    def _empty(self, name: str) -> None:
        tables = [row[0] for row in self.run("SHOW TABLES", database=name) if row[0] != "alembic_version"]
        has_rows = " UNION ALL ".join(f"SELECT '{table}' FROM (SELECT 1 FROM {table} LIMIT 1) it" for table in tables)
        used = [row[0] for row in self.run(has_rows, database=name)]
        # Numbers begin at 1 again: tests name them.
        emptied = [
            each for table in used for each in (f"DELETE FROM {table}", f"ALTER TABLE {table} AUTO_INCREMENT = 1")
        ]
        seeded = [f"INSERT INTO {table} SELECT * FROM {name}_seeds.{table}" for table in SEEDED]
        self.run(*emptied, *seeded, database=name)

    def _command(self) -> list[str]:
        here = [f"--{what}={self._folder / what}" for what in ("socket", "pid-file", "log-error")]
        known = [f"--datadir={self._folder / 'data'}", "--bind-address=127.0.0.1", f"--port={self.port}"]
        lean = ["--skip-name-resolve", "--skip-log-bin", "--performance-schema=OFF", "--innodb-log-file-size=32M"]
        # What a crash of the machine would lose is no loss here.
        quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", "--max-allowed-packet=64M"]
        return [
            str(_program("mariadbd")),
            "--no-defaults",
            *self._as_root,
            *here,
            *known,
            *lean,
            *quick,
            *self._options,
        ]

    def _answers(self) -> bool:
        assert self._process is not None
        for _ in range(int(STARTS_WITHIN_SECONDS / 0.02)):
            if self._process.poll() is not None:
                return False
            with suppress(pymysql.err.Error, OSError):
                self.session().close()
                return True
            time.sleep(0.02)
        return False


@contextmanager
def a_mariadb(*options: str) -> Iterator[MariaDb]:
    """A mariadbd that keeps its files in memory where it can, and takes them with it."""
    assert _program("mariadbd"), "there is no mariadbd on this machine: `make servers` installs one"
    with tempfile.TemporaryDirectory(prefix="sellerwatch-mariadb-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        server = MariaDb(Path(folder), options)
        try:
            server.start()
            yield server
        finally:
            server.stop(kill=True)


def _program(name: str) -> str | None:
    # Debian keeps servers where only root's PATH looks.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def a_free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
