"""ministack, a stand-in for SQS and EventBridge, with a clock that whoever started it sets.

Run by the interpreter of ministack's own environment. Each line on its input is by how many seconds its clock is ahead
from now on, and is answered by the same line: five minutes of deduplication, or a day between two firings of a rule,
need not be waited for. `fail` and a number of seconds: so long every question is answered with an error. When its input ends
it ends too, so that it never outlives a test.
"""

import os
import sys
import threading
import time
from typing import Any

LOOKS_FOR_DUE_RULES_EVERY = 0.1

really_now = time.time
ahead = 0.0
fails_until = 0.0
ERROR = b'{"__type": "com.amazonaws.sqs#InternalError", "message": "as it was told to"}'


def now() -> float:
    return really_now() + ahead


def obey() -> None:
    global ahead, fails_until  # noqa: PLW0603 - the clock of a whole process is one
    for line in sys.stdin:
        if line.startswith("fail "):
            fails_until = time.monotonic() + float(line.split()[1])
        else:
            ahead = float(line)
        sys.stdout.write(line)
        sys.stdout.flush()
    os._exit(0)


def at_times_failing(app: Any) -> Any:
    async def answered(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or time.monotonic() >= fails_until:
            await app(scope, receive, send)
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/x-amz-json-1.0"), (b"content-length", str(len(ERROR)).encode())]
        await send({"type": "http.response.start", "status": 500, "headers": headers})
        await send({"type": "http.response.body", "body": ERROR})

    return answered


if __name__ == "__main__":
    time.time = now
    threading.Thread(target=obey, daemon=True).start()
    from ministack import app
    from ministack.services import eventbridge, sqs  # noqa: F401 - loaded before the first question

    eventbridge._SCHEDULER_TICK_INTERVAL = LOOKS_FOR_DUE_RULES_EVERY
    sys.argv = ["ministack"]
    app.app = at_times_failing(app.app)
    app.main()
