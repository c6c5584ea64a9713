"""Credentials for the API: `token issue` for people, `key generate` for other systems.

Each is shown once and kept nowhere; of a key the settings hold a hash only.
"""

import hashlib
import re
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Invalid, Refused
from sellerwatch.entry.cli.door import group, settings_of
from sellerwatch.entry.cli.options import checked

if TYPE_CHECKING:
    from sellerwatch.settings import Settings

HOURS_MIN, HOURS_MAX = 0.001, 24
KEY_BYTES = 32
KEY_PREFIX = "swk_"
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

token = group("Access tokens for the API.")
key = group("Keys for other systems that call /api/internal.")
app = typer.Typer()
app.add_typer(token, name="token")
app.add_typer(key, name="key")


class RoleName(StrEnum):
    ADMIN = "admin"
    VIEWER = "viewer"


def _hours(hours: float) -> None:
    if not HOURS_MIN <= hours <= HOURS_MAX:  # also refuses nan
        raise Invalid("hours", hours, f"{HOURS_MIN} to {HOURS_MAX}")


def _name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Invalid("name", name, "1 to 64 of A-Z a-z 0-9 . _ -")


@token.command("issue", epilog="Example: TOKEN=$(sellerwatch token issue --role admin)")
def issue_token(
    ctx: typer.Context,
    role: Annotated[RoleName, typer.Option("--role", help="admin writes and reads, viewer reads.")],
    hours: Annotated[
        float,
        typer.Option("--hours", help="How long it is good for, at most 24.", callback=checked(_hours)),
    ] = 1.0,
) -> None:
    """Issue a token: the token alone, on one line of stdout."""
    from sellerwatch.adapters.chance import SystemChance  # noqa: PLC0415 - slow to load
    from sellerwatch.adapters.clock import SystemClock  # noqa: PLC0415
    from sellerwatch.adapters.vault import keys_beside  # noqa: PLC0415
    from sellerwatch.entry.api.tokens import Role, issue  # noqa: PLC0415
    from sellerwatch.settings import PREFIX, with_kept_keys  # noqa: PLC0415

    chance = SystemChance()
    settings = settings_of(ctx)
    if _forgets(settings):
        # What would sign is forgotten as soon as this command ends.
        raise Refused(f"{PREFIX}JWT_SECRET is missing: a database in memory keeps none; give at least 32 bytes")
    settings = with_kept_keys(settings, keys_beside, chance.token_bytes)
    typer.echo(issue(settings, Role[role.name], timedelta(hours=hours), SystemClock(), chance))


@key.command("generate", epilog="Example: sellerwatch key generate --name eventbridge")
def generate_key(
    name: Annotated[
        str,
        typer.Option("--name", help="Whose key it is; it shows in logs.", callback=checked(_name)),
    ] = "internal",
) -> None:
    """Make a key: the key to give away, and the entry of SELLERWATCH_API_KEYS that accepts it."""
    from sellerwatch.adapters.chance import SystemChance  # noqa: PLC0415 - slow to load

    made = KEY_PREFIX + SystemChance().token_bytes(KEY_BYTES).hex()
    typer.echo(f"key                            {made}")
    typer.echo(f"entry of SELLERWATCH_API_KEYS  {name}:{hashlib.sha256(made.encode()).hexdigest()}")
    typer.secho("The key is shown this once: keep it where it is used. The entry is no secret.", err=True)


def _forgets(settings: "Settings") -> bool:
    """Whether nobody keeps the secret that would sign: none is given, and the database is in memory."""
    is_in_memory = settings.embedded and settings.database_file is None
    return is_in_memory and settings.jwt_secret is None and settings.jwt_algorithm == "HS256"
