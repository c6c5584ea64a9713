"""What a setting's value may be: forms of addresses, keys and numbers.

Promises: each form says in one phrase what is wrong and what would be right, and never repeats the value. Refuses:
plain http to other machines unless it was allowed, options nobody knows, keys of another length.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo

LIMIT_MAX: Final = 1_000_000
SECRET_BYTES: Final = 32
SIGNING_BYTES: Final = 24
OPEN_ADDRESS: Final = "plain http only to this machine, or with `ALLOW_PLAIN_HTTP`"
KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
SQLITE: Final = re.compile(r"sqlite://(/[^?#]*)?")
QUEUE_NAME: Final = re.compile(r"(?=.{1,80}\Z)[A-Za-z0-9_-]+(\.fifo)?", re.ASCII)
REGION: Final = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
GROUP: Final = re.compile(r"[!-~]{1,128}", re.ASCII)
BUS_NAME: Final = re.compile(r"[A-Za-z0-9._/-]{1,256}", re.ASCII)
API_KEY_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True)
class SqsAddress:
    """A queue of SQS and the one for its dead letters; region and endpoint by the AWS chain where not given."""

    name: str
    dead_letters: str
    region: str | None
    endpoint: str | None

    @property
    def fifo(self) -> bool:
        return self.name.endswith(".fifo")


@dataclass(frozen=True)
class EventBridgeAddress:
    """A bus, and the target that its rules put triggers into."""

    bus: str
    target_arn: str
    region: str | None
    endpoint: str | None
    role_arn: str | None
    group_id: str | None


@dataclass(frozen=True)
class Right:
    """What would be right, to complete "… is not …"."""

    text: str


@dataclass(frozen=True)
class Secret:
    """Shown to nobody."""


def _plain(value: str, right: str) -> SplitResult:
    if any(mark <= " " or mark > "~" or mark == "\\" for mark in value):
        raise ValueError(f"has characters that no address has; give {right}")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(f"is not {right}") from None
    if port == 0:
        raise ValueError(f"is not {right}")
    return parts


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def web(value: str, plain: bool) -> str:
    right = "an address like https://host/path, without user or fragment"
    parts = _plain(value, right)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or "#" in value:
        raise ValueError(f"is not {right}")
    if parts.scheme == "http" and not _loopback(parts.hostname) and not plain:
        raise ValueError("is plain http to another machine; use https, or set SELLERWATCH_ALLOW_PLAIN_HTTP=true")
    return value


def site(value: str, plain: bool) -> str:
    parts = urlsplit(web(value, plain))
    if parts.path not in {"", "/"} or "?" in value:
        raise ValueError("has a path; give scheme, host and port only, like https://host")
    return f"{parts.scheme}://{parts.netloc}"


def database(value: str) -> str:
    right = "sqlite:///file.db, sqlite:// (in memory) or mysql://user:password@host:3306/database"
    if value.startswith("sqlite://"):
        # A path may have spaces and any letters.
        if not SQLITE.fullmatch(value) or not value.isprintable():
            raise ValueError(f"is not {right}")
        return value
    parts = _plain(value, right)
    kind = parts.scheme.partition("+")[0]
    if kind not in {"mysql", "mariadb"} or not parts.hostname or not re.fullmatch(r"/[^/]+", parts.path):
        raise ValueError(f"is not {right}")
    return value


def redis(value: str) -> str:
    right = "an address like redis://host:6379/0 (or rediss://, unix://)"
    parts = _plain(value, right)
    is_net = parts.scheme in {"redis", "rediss"}
    if not (parts.hostname if is_net else parts.scheme == "unix" and parts.path):
        raise ValueError(f"is not {right}")
    if is_net and not re.fullmatch(r"(/[0-9]{0,9})?", parts.path, re.ASCII):
        raise ValueError(f"is not {right}")
    return value


def _options(parts: SplitResult, known: set[str], plain: bool) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) != len(pairs) or not all(options.values()) or not set(options) <= known or parts.fragment:
        raise ValueError(f"has options that are unknown, empty or double; known are {', '.join(sorted(known))}")
    for name, form, like in (("region", REGION, "ap-northeast-2"), ("group_id", GROUP, "triggers")):
        if name in options and not form.fullmatch(options[name]):
            raise ValueError(f"has a {name} that AWS does not know; give one like {like}")
    if "endpoint" in options:
        options["endpoint"] = web(options["endpoint"], plain)
    return options


def sqs(value: str, plain: bool) -> SqsAddress:
    right = "sqs:///name[.fifo]?region=…&endpoint=…&dlq=…"
    parts = _plain(value, right)
    name = unquote(parts.path.removeprefix("/"))
    options = _options(parts, {"region", "endpoint", "dlq"}, plain)
    stem = name.removesuffix(".fifo")
    dead_letters = options.get("dlq", f"{stem}-dlq" + name[len(stem) :])
    for queue_name in (name, dead_letters):
        if not QUEUE_NAME.fullmatch(queue_name):
            raise ValueError(f"is not {right}, its names up to 80 of A-Z a-z 0-9 _ -")
    if name == dead_letters:
        raise ValueError("has its dead letters in itself; give dlq= another name, or leave it out")
    if not value.startswith("sqs:///") or name.endswith(".fifo") != dead_letters.endswith(".fifo"):
        raise ValueError(f"is not {right}, with three slashes and both queues fifo or both not")
    return SqsAddress(name, dead_letters, options.get("region"), options.get("endpoint"))


def queue(value: str, plain: bool) -> SqsAddress | None:
    """The queue of SQS, or none: the database."""
    if value == "database:":
        return None
    if not value.startswith("sqs:"):
        raise ValueError("is not database: or sqs:///name[.fifo]?region=…&endpoint=…")
    return sqs(value, plain)


def apart(triggers: str, info: ValidationInfo) -> str:
    """The queue of triggers, when it shares none with the tasks."""
    theirs, ours = queue(info.data.get("queue_url", "database:"), plain=True), sqs(triggers, plain=True)
    if theirs and {ours.name, ours.dead_letters} & {theirs.name, theirs.dead_letters}:
        raise ValueError("is a queue of SELLERWATCH_QUEUE_URL too; give triggers one of their own")
    return triggers


def eventbridge(value: str, plain: bool) -> EventBridgeAddress:
    right = "eventbridge:///default?region=…&endpoint=…&target_arn=…"
    parts = _plain(value, right)
    bus = unquote(parts.path.removeprefix("/"))
    options = _options(parts, {"region", "endpoint", "target_arn", "role_arn", "group_id"}, plain)
    if not value.startswith("eventbridge:///") or not BUS_NAME.fullmatch(bus):
        raise ValueError(f"is not {right}, with three slashes")
    for name in ("target_arn", "role_arn"):
        if not options.get(name, "arn:").startswith("arn:") or (name == "target_arn" and name not in options):
            raise ValueError(f"has no {name} that begins with arn:; give {right}")
    if ":api-destination/" in options["target_arn"] and "role_arn" not in options:
        raise ValueError("has an API destination and no role_arn; give the role that may invoke it")
    return EventBridgeAddress(
        bus,
        options["target_arn"],
        options.get("region"),
        options.get("endpoint"),
        options.get("role_arn"),
        options.get("group_id"),
    )


def schedule(value: str, plain: bool) -> EventBridgeAddress | None:
    """The bus of EventBridge, or none: the built-in schedule."""
    if value == "builtin:":
        return None
    if not value.startswith("eventbridge:"):
        raise ValueError("is not builtin: or eventbridge:///default?region=…&target_arn=…")
    return eventbridge(value, plain)


def _unbased(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def server_key(secret: str) -> bytes:
    key = _unbased(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else None
    if key is None or len(key) < SIGNING_BYTES:
        raise ValueError("is not whsec_ and the base64 of at least 24 bytes")
    return key


def ring(text: str) -> tuple[tuple[str, bytes], ...]:
    keys = []
    for entry in text.split(","):
        key_id, _, encoded = entry.strip().partition(":")
        key = _unbased(encoded)
        if not KEY_ID.fullmatch(key_id) or key is None or len(key) != SECRET_BYTES:
            raise ValueError("is not id:base64(32 bytes), comma separated, ids of A-Z a-z 0-9 _ -")
        keys.append((key_id, key))
    if len(dict(keys)) != len(keys):
        raise ValueError("has an id twice; give each key an id of its own")
    return tuple(keys)


def digests(text: str) -> dict[str, bytes]:
    digests = {}
    entries = [entry.strip().partition(":") for entry in text.split(",")]
    for name, _, digest in entries:
        if not API_KEY_NAME.fullmatch(name) or not DIGEST.fullmatch(digest):
            raise ValueError("is not name:hex SHA-256, comma separated; `sellerwatch key generate` makes an entry")
        digests[name] = bytes.fromhex(digest)
    if len(digests) != len(entries):
        raise ValueError("has a name twice; give each key a name of its own")
    if hashlib.sha256(b"").digest() in digests.values():
        raise ValueError("has the digest of an empty key; `sellerwatch key generate` makes an entry")
    return digests


def long_enough(secret: str) -> str:
    if len(secret.encode()) < SECRET_BYTES:
        raise ValueError(f"is shorter than {SECRET_BYTES} bytes; give a longer one")
    return secret


def path(value: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", value, re.ASCII) or "/.." in value or "/./" in value:
        raise ValueError("is not a path like /v1/search/mini-shop-search, without a query")
    return value


def zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError("is not a time zone of the tz database, like Asia/Seoul or UTC") from None
    return value


def pem(value: str) -> str:
    text = value.replace("\\n", "\n").strip()
    if not text.startswith("-----BEGIN PUBLIC KEY-----") or not text.endswith("-----END PUBLIC KEY-----"):
        raise ValueError("is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)")
    return text + "\n"


def lowered(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _numbered(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


def address(form: Callable[[str, bool], object]) -> AfterValidator:
    """The check of an address that may be plain http when `allow_plain_http` says so."""

    def checked(value: str, info: ValidationInfo) -> str:
        found = form(value, bool(info.data.get("allow_plain_http")))
        return found if isinstance(found, str) else value

    return AfterValidator(checked)


_Number = BeforeValidator(_numbered)
Count = Annotated[int, Field(ge=0, le=LIMIT_MAX), _Number, Right(f"a whole number from 0 to {LIMIT_MAX}")]
Size = Annotated[int, Field(ge=1, le=LIMIT_MAX), _Number, Right(f"a whole number from 1 to {LIMIT_MAX}")]
Bytes = Annotated[int, Field(ge=1, le=1 << 40), _Number, Right(f"a number of bytes from 1 to {1 << 40}")]
Rate = Annotated[
    float, Field(ge=0, le=LIMIT_MAX, allow_inf_nan=False), _Number, Right(f"a number from 0 to {LIMIT_MAX}")
]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), _Number, Right("a number of percent, 0 to 100")]
Seconds = Annotated[
    float, Field(ge=0, le=LIMIT_MAX, allow_inf_nan=False), _Number, Right(f"a number of seconds from 0 to {LIMIT_MAX}")
]
# A time that something waits or runs again after: nothing would make it spin.
Period = Annotated[
    float,
    Field(ge=0.001, le=LIMIT_MAX, allow_inf_nan=False),
    _Number,
    Right(f"a number of seconds from 0.001 to {LIMIT_MAX}"),
]
Override = Annotated[
    float | None,
    Field(ge=0.001, le=LIMIT_MAX, allow_inf_nan=False),
    _Number,
    Right(f"a number of seconds from 0.001 to {LIMIT_MAX}"),
]
Switch = Annotated[bool, Right("true or false")]
Text = Annotated[str, Field(max_length=200), Right("a text of up to 200 characters")]
OptionalWeb = Annotated[Annotated[str, address(web)] | None, Right("an address like https://host/path")]
# The path of a webhook is its password.
SecretWeb = Annotated[OptionalWeb, Secret()]
OptionalSecret = Annotated[SecretStr | None, Secret(), Right("a text")]
