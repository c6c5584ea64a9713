"""Found first by a process that is listened to: writes each statement that SQLite is given, with its values, to a file."""

import os
import sqlite3.dbapi2
from pathlib import Path
from typing import Any

_connect = sqlite3.dbapi2.connect
# Told by the environment, as it is found by it, and open for as long as the process is.
_out = Path(os.environ["SPY_FILE"]).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115, TID251


def connect(*arguments: Any, **named: Any) -> Any:
    made = _connect(*arguments, **named)
    made.set_trace_callback(lambda said: _out.write(said.replace("\n", " ") + "\n"))
    return made


sqlite3.connect = sqlite3.dbapi2.connect = connect
