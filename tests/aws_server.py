"""ministack, a stand-in for SQS and EventBridge, with a clock that whoever started it sets.

Run by the interpreter of ministack's own environment. Each line on its input is by how many seconds its clock is ahead
from now on, and is answered by the same line: five minutes of deduplication, or a day between two firings of a rule,
need not be waited for. When its input ends it ends too, so that it never outlives a test.
"""

import os
import sys
import threading
import time

LOOKS_FOR_DUE_RULES_EVERY = 0.1

really_now = time.time
ahead = 0.0


def now() -> float:
    return really_now() + ahead


def obey() -> None:
    global ahead  # noqa: PLW0603 - the clock of a whole process is one
    for line in sys.stdin:
        ahead = float(line)
        sys.stdout.write(line)
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    time.time = now
    threading.Thread(target=obey, daemon=True).start()
    from ministack.app import main
    from ministack.services import eventbridge, sqs  # noqa: F401 - loaded before the first question

    eventbridge._SCHEDULER_TICK_INTERVAL = LOOKS_FOR_DUE_RULES_EVERY
    sys.argv = ["ministack"]
    main()
