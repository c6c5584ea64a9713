"""The Lua scripts: each is its file behind the parts that its header says it USES, known to Redis by its hash.

Promises that what is loaded is what stands in `lua/`. Refuses nothing; a part that is not there is a mistake of ours.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

PARTS = frozenset(
    {
        "prelude",
        "held",
        "windows",
        "ceiling",
        "calm",
        "holds",
        "spent",
        "head",
        "members",
        "smooth",
        "breakers",
        "gates",
        "budgets",
    }
)
_USES = re.compile(r"^-- USES +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    text: str

    @property
    def sha(self) -> str:
        """As SCRIPT LOAD answers."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


@cache
def sources(of: str = "") -> Mapping[str, str]:
    """The pool's files in `lua/`, by their names; or those of a folder in it, which use no parts."""
    folder = resources.files(__package__).joinpath("lua", of)
    found = sorted(folder.iterdir(), key=lambda each: each.name)
    return MappingProxyType(
        {each.name.removesuffix(".lua"): each.read_text("utf-8") for each in found if each.name.endswith(".lua")}
    )


def put_together(files: Mapping[str, str]) -> Mapping[str, Script]:
    scripts = {name: Script(name, whole(files, name)) for name in files if name not in PARTS}
    return MappingProxyType(scripts)


def whole(files: Mapping[str, str], name: str) -> str:
    return "\n".join(_bare(files[part]) for part in (*used(files[name]), name))


def used(text: str) -> tuple[str, ...]:
    found = _USES.search(text)
    return tuple(found[1].split()) if found else ()


def _bare(text: str) -> str:
    """Without comments and indents: they are read here, not there."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("--"))
