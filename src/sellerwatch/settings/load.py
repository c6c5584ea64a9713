"""From the environment and the file to settings; the keys that were not given; the page of the docs.

Promises: all problems are named at once, each on one line: the setting, its value (secrets hidden), what is wrong and
what would be right. On SQLite, keys that were not given are made once and kept beside the database file.
"""

import base64
import difflib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from sellerwatch.domain.errors import Refused
from sellerwatch.settings import forms
from sellerwatch.settings.declared import PREFIX, Settings, shown

CONFIG: Final = "config"
OTEL: Final = "otel_"

PAGE_HEAD: Final = """# Settings

Environment variables, or keys of a TOML file (`--config FILE` or `SELLERWATCH_CONFIG`; there in capitals or small
letters, with or without the prefix). The environment wins over the file. Durations are seconds, sizes bytes, rates
percent, all as plain numbers. Unknown, empty and invalid settings are refused at start, all at once. A limit may be
set from 0 to 1000000, but for those four that say why they can't be 0; one that is above its default is named once at
start. This page is generated.

| setting | default | meaning |
|---|---|---|
"""


class SettingsRefused(Refused):
    """Settings that can't be used: one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load(config: Path | None = None, overrides: Mapping[str, object] | None = None) -> Settings:
    """The settings of this process.

    `overrides`, by attribute name, win over the environment, and that over the file.
    """
    environment = _environment()
    named = environment.pop(CONFIG, None)
    problems: list[str] = []
    file: dict[str, object] = {}
    try:
        if config is None and named is not None:
            config = Path(named) if named.strip() else _refuse(CONFIG, "", "is empty; give the path of a TOML file")
        file = _file(config) if config else {}
    except SettingsRefused as refused:
        problems += refused.problems
    given = {**file, **environment, **(overrides or {})}
    extra = {name: value for name, value in given.items() if name not in Settings.model_fields}
    problems += [line for name, value in extra.items() if (line := _unknown(name, value))]
    # The environment is not handed over: pydantic-settings reads it itself, under what is handed over.
    handed = {
        name: value
        for name, value in {**file, **(overrides or {})}.items()
        if name not in extra and (name not in environment or name in (overrides or {}))
    }
    try:
        settings = Settings.model_validate(handed)
    except ValidationError as error:
        raise SettingsRefused(problems + _problems(error, given)) from None
    if problems:
        raise SettingsRefused(problems)
    return settings.with_otel({name.upper(): str(value) for name, value in extra.items()})


def needed(settings: Settings, *names: str) -> None:
    """Refuse to go on without settings that have no default but are used by what is about to start."""
    missing = [name for name in names if getattr(settings, name) is None]
    if missing:
        raise SettingsRefused([_line(name, None, f"is missing; give {_right(name)}") for name in missing])


def with_kept_keys(
    settings: Settings,
    keep: Callable[[Path, Callable[[], str]], str],
    random_bytes: Callable[[int], bytes],
) -> Settings:
    """The settings with the keys that were not given; `keep` finds or makes what a file beside the database holds.

    In memory they last as long as the process. With MySQL nothing is missing, or `load` would have refused.
    """

    def made() -> str:
        return base64.b64encode(random_bytes(forms.SECRET_BYTES)).decode()

    def kept(name: str, suffix: str, make: Callable[[], str], form: Callable[[str], object]) -> SecretStr:
        beside = settings.database_file
        if beside is None:
            return SecretStr(make())
        path = beside.with_name(beside.name + suffix)
        secret = keep(path, make)
        try:
            form(secret)
        except ValueError as error:
            raise SettingsRefused([f"{PREFIX}{name.upper()}=***, kept in {path}: {error}"]) from None
        return SecretStr(secret)

    if not settings.embedded:
        return settings
    found: dict[str, SecretStr] = {}
    if settings.token_keys is None:
        found["token_keys"] = kept("token_keys", ".token-keys", lambda: f"k1:{made()}", forms.ring)
    if settings.jwt_secret is None and settings.jwt_algorithm == "HS256":
        found["jwt_secret"] = kept("jwt_secret", ".jwt-secret", made, forms.long_enough)
    return settings.model_copy(update=found)


def settings_page() -> str:
    """docs/settings.md, from the declarations."""
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(field)} | {field.description} |\n"
        for name, field in Settings.model_fields.items()
    ]
    return PAGE_HEAD + "".join(rows)


def _environment() -> dict[str, str]:
    return {
        name.upper().removeprefix(PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.upper().startswith(PREFIX)
    }


def _file(path: Path) -> dict[str, object]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        _refuse(CONFIG, str(path), f"cannot be read ({error.strerror}); give a TOML file")
    except ValueError as error:
        # Both of bytes that are not UTF-8 and of text that is not TOML; the message tells the place, not the content.
        place = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not UTF-8"
        _refuse(CONFIG, str(path), f"is not TOML ({place}); mend it")
    values = {name.upper().removeprefix(PREFIX).lower(): value for name, value in content.items()}
    if len(values) != len(content):
        _refuse(CONFIG, str(path), "has a setting twice; keep one of them")
    return values


def _problems(error: ValidationError, given: Mapping[str, object]) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        cause = problem.get("ctx", {}).get("error")
        value = given.get(name, Settings.model_fields[name].default)
        lines.append(_line(name, value, str(cause) if cause is not None else f"is not {_right(name)}"))
    return lines


def _unknown(name: str, value: object) -> str | None:
    if name.startswith(OTEL):
        return None if str(value).strip() else f"{PREFIX}{name.upper()}=: is empty; give it a value, or leave it out"
    near = difflib.get_close_matches(name, [*Settings.model_fields, CONFIG], n=1)
    hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else "docs/settings.md names all there are"
    # Its value may be a secret under a misspelt name.
    return f"{PREFIX}{name.upper()}=***: is not a setting; {hint}"


def _line(name: str, value: object, problem: str) -> str:
    if value is None:
        return f"{PREFIX}{name.upper()} {problem}"
    text = str(value) if name == CONFIG else shown(name, value)
    return f"{PREFIX}{name.upper()}={text}: {problem}"


def _refuse(name: str, value: object, problem: str) -> NoReturn:
    raise SettingsRefused([_line(name, value, problem)]) from None


def _right(name: str) -> str:
    field = Settings.model_fields[name]
    right = next((mark.text for mark in field.metadata if isinstance(mark, forms.Right)), "what it should be")
    _, _, why = (field.description or "").partition("; at least 1: ")
    return f"{right}: {why}" if why else right


def _default(field: FieldInfo) -> str:
    if field.default is None:
        return "–"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
