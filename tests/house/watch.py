"""A program: imports the modules it is told and prints what the house does meanwhile that it should not.

`python watch.py HOUSE MODULE…`. What a library does while it is itself imported is the library's affair; what it does
because a module of the house calls it is the house's. Merely reading a file or a variable is the caller's affair.
"""

import importlib
import os
import sys
import sysconfig
import threading
from types import FrameType

HOUSE = sys.argv[1]
STDLIB, SITE = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
LOUD = {
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "sqlite3.connect"),
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn"),
    *("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.putenv"),
}
found: list[str] = []


def place(frame: FrameType | None, *, direct: bool) -> str | None:
    """Where in the house this comes from; `direct`: with nothing but the standard library between."""
    while frame:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return None
        if name.startswith(HOUSE):
            return f"{name[len(HOUSE) + 1 :]}:{frame.f_lineno}"
        if direct and (name.startswith(SITE) or not name.startswith((STDLIB, "<", __file__))):
            return None
        frame = frame.f_back
    return None


def tell(what: str, *, direct: bool = False) -> None:
    if where := place(sys._getframe(2), direct=direct):
        found.append(f"{where}: {what}")


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in LOUD:
        tell(event)
    elif event == "open":
        tell(f"opens {arguments[0]}", direct=not set(str(arguments[1] or "")) & set("wax+"))


class Environment(type(os.environ)):
    def __init__(self, real: object) -> None:
        self.__dict__.update(real.__dict__)

    def __getitem__(self, name: str) -> str:
        tell(f"reads ${name}", direct=True)
        return super().__getitem__(name)


def start(*arguments: object) -> int:
    tell("starts a thread")
    return really_start(*arguments)


really_start, threading._start_new_thread = threading._start_new_thread, start
os.environ = Environment(os.environ)
sys.path.insert(0, os.path.dirname(HOUSE))
sys.addaudithook(watch)
for module in sys.argv[2:]:
    importlib.import_module(module)
sys.stdout.write("\n".join(found))
