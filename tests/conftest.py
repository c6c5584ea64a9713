"""What holds in every test: the network ends at this machine, and nobody really waits.

Both are kept here and not by good will: a connection or a name beyond loopback, or a sleep a person would notice, fails
the test that tried, with what is no `Exception`: no retry of ours can swallow it. Hypothesis runs few examples unless
asked for more (`--hypothesis-profile=ci`, as `make test` does).
"""

import gc
import ipaddress
import os
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import servers

SLEEP_SECONDS_MAX = 0.1

LOOPBACK_NAMES = {"", "localhost", "ip6-localhost", "testserver", "0.0.0.0", "::"}

settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The whole suite judges a change, so it tries the same each time; what `dev` meets by chance is for who is at work.
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--answers", type=int, default=400, help="how many malformed answers the parsers are given")


def pytest_collection_finish() -> None:
    """Ten thousand tests are a million objects, and their reports are as many again: whoever collects garbage would
    look through all of them every few hundred allocations.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 10, 20)


def at_home(host: object) -> bool:
    name = host.decode(errors="replace") if isinstance(host, bytes) else str(host or "")
    if name in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def keep_at_home(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook sees what no patched function does: every connection made through Python's sockets."""
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        # A path is a socket of this machine.
        if isinstance(address, tuple) and not at_home(address[0]):
            pytest.fail(f"tests stay on this machine: no connection to {address[0]}")
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"} and not at_home(arguments[0]):
        pytest.fail(f"tests stay on this machine: nobody is asked who {arguments[0]!r} is")


sys.addaudithook(keep_at_home)

# Where temporary folders are made: a database in memory waits for no disk.
if servers.MEMORY.is_dir():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(servers.MEMORY))


@pytest.fixture(autouse=True, scope="session")
def _nobody_really_waits() -> Iterator[None]:
    really_sleep = time.sleep

    def sleep(seconds: float) -> None:
        if seconds > SLEEP_SECONDS_MAX:
            pytest.fail(f"a test slept {seconds} s: hand in a clock, or wait for what is to happen in small steps")
        really_sleep(seconds)

    time.sleep = sleep
    yield
    time.sleep = really_sleep


@pytest.fixture(scope="session")
def mariadb() -> Iterator[servers.MariaDb]:
    """One for all tests of this process that want one, started for the first of them."""
    with servers.a_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def aws_server() -> Iterator[servers.Aws]:
    """One for all tests of this process that want one, its credentials where the AWS chain finds them."""
    with pytest.MonkeyPatch.context() as patch, servers.an_aws() as server:
        for name, value in servers.AWS_CREDENTIALS.items():
            patch.setenv(name, value)
        yield server
