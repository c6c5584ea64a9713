"""The guards of tests/conftest.py guard."""

import asyncio
import socket
import time

import pytest


def test_a_connection_beyond_this_machine_is_refused() -> None:
    with socket.socket() as sock, pytest.raises(pytest.fail.Exception, match="stay on this machine"):
        sock.connect(("192.0.2.1", 80))


def test_a_name_beyond_this_machine_is_not_looked_up() -> None:
    with pytest.raises(pytest.fail.Exception, match="stay on this machine"):
        socket.getaddrinfo("example.com", 443)


async def test_asyncio_does_not_get_round_it() -> None:
    with pytest.raises(pytest.fail.Exception, match="stay on this machine"):
        await asyncio.open_connection("192.0.2.1", 80)


def test_this_machine_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_a_sleep_that_a_person_would_notice_is_refused() -> None:
    with pytest.raises(pytest.fail.Exception, match="hand in a clock"):
        time.sleep(1)
