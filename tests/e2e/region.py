"""The distributed system in a folder: MariaDB, Redis, a stand-in for SQS and EventBridge, and real processes of every role.

What a town is on one file, a region is on all engines: the same questions, asked of the database; and any of them may
be killed, lost or away for a while.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import servers
from e2e.town import JWT_SECRET, NAME, TOKEN_KEYS, Running, Town

ROLES = ("api", "scheduler", "worker")
TASKS, TRIGGERS = "mustit-crawler-tasks.fifo", "mustit-crawler-triggers.fifo"
PATIENCE = 300.0


@dataclass
class Region(Town):
    redis: servers.MortalRedis | None = None
    aws: servers.Aws | None = None
    at_work: list[tuple[str, Running]] = field(default_factory=list)
    """Each role's processes that should be alive."""

    def role(self, name: str) -> Running:
        running = self.start(name, "--port", "0")
        self.at_work.append((name, running))
        return running

    def replace(self, place: int) -> str:
        """`kill -9` one of them, and start another in its place; which role it was."""
        role, running = self.at_work.pop(place)
        running.kill()
        self.role(role)
        return role

    def supervise(self) -> None:
        """Start again what ended by itself, as whoever runs it would: without its database a process does not begin."""
        for place, (role, running) in enumerate(self.at_work):
            if not running.is_alive():
                assert "error: database: " in running.says(), running.says()[-2000:]
                self.at_work[place] = (role, self.start(role, "--port", "0"))

    def is_at_rest(self) -> bool:
        """Whether everything is at its end, by processes that are started again where they ended."""
        self.supervise()
        return not self.open_things()

    def is_alive(self) -> bool:
        return all(running.is_alive() for _, running in self.at_work)

    def dead_letters(self) -> list[str]:
        return [line for line in self.does("dlq", "list", "--json").splitlines() if line.strip() not in {"", "[]"}]


@contextmanager
def a_region(folder: Path, mariadb: servers.MariaDb | None = None, **settings: object) -> Iterator[Region]:
    """With the ceiling over the whole site lifted and deliveries made at once; the identities' budgets stand."""
    with ExitStack() as stack:
        mariadb = mariadb or stack.enter_context(servers.a_mariadb())
        redis = stack.enter_context(servers.a_mortal_redis())
        aws = stack.enter_context(servers.an_aws())
        region = Region(folder, mariadb=mariadb, redis=redis, aws=aws)
        where = f"region={servers.AWS_REGION}&endpoint={quote(aws.url, safe='')}"
        target = f"arn:aws:sqs:{servers.AWS_REGION}:{servers.AWS_ACCOUNT}:{TRIGGERS}"
        region.environment |= servers.AWS_CREDENTIALS
        region.set(
            database_url=mariadb.without_tables(NAME),
            database_pool_min=2,
            database_pool_max=10,
            redis_url=redis.now.url,
            queue_url=f"sqs:///{TASKS}?{where}",
            trigger_queue_url=f"sqs:///{TRIGGERS}?{where}",
            schedule_url=f"eventbridge:///default?{where}&target_arn={quote(target, safe='')}",
            token_keys=TOKEN_KEYS,
            jwt_secret=JWT_SECRET,
            site_requests_per_second=1000,
            delivery_interval=1,
            log_format="json",
        )
        region.set(**settings)
        region.does("db", "upgrade")
        region.does("queue", "setup")
        try:
            yield region
        finally:
            for running in region.started:
                running.kill()
