"""Each Lua file says what it is for, what it touches, takes and gives, why it is atomic and what it costs; and it is so."""

import re

import pytest

from sellerwatch.adapters.redis.pool import KEYS
from sellerwatch.adapters.redis.scripts import PARTS, put_together, sources, used

FILES = sources()
LOCKS = sources("locks")
SECTIONS = ("PURPOSE", "USES", "KEYS", "ARGV", "RETURNS", "ATOMIC", "COST")
NAMES = {key.removesuffix(":"): key.removesuffix(":").upper() for key in KEYS}
MAY_SPEAK = re.compile(r"\bcall\('([A-Z]+)'")
GROWS = {"KEYS", "SMEMBERS", "SCAN", "SSCAN", "HSCAN", "ZSCAN", "SORT", "HVALS", "LRANGE"}


def header(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        words = line.removeprefix("--").split()
        if words and words[0] in SECTIONS and line.startswith(f"-- {words[0]}"):
            section = words[0]
            found[section] = " ".join(words[1:])
        elif section:
            found[section] += "\n" + line.removeprefix("--").strip()
    return found


def body(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith("--"))


def unquoted(text: str) -> str:
    return re.sub(r"'[^']*'", "''", body(text))


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"^\[(\d+)\]", text, re.MULTILINE)}


@pytest.mark.parametrize("name", FILES)
def test_a_file_begins_with_all_that_a_reader_must_know(name):
    said = header(FILES[name])
    wanted = set(SECTIONS) - ({"USES"} if name in PARTS else set())
    assert wanted <= set(said)
    assert all(said[section] or section in {"ARGV", "KEYS"} for section in wanted)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_s_script_says_all_that_a_reader_must_know_and_stands_alone(name):
    said, text = header(LOCKS[name]), body(LOCKS[name])
    assert {*said} == {*SECTIONS} - {"USES"}
    assert all(said.values())
    assert numbers(said["ARGV"]) == {int(number) for number in re.findall(r"ARGV\[(\d+)", text)}
    assert set(re.findall(r"redis\.call\('([A-Z]+)'", text)) <= {"GET", "SET", "DEL"}
    assert not re.findall(r"^(?!local |for )\w+ *=[^=]", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"prelude"}))
def test_the_keys_it_names_are_the_keys_it_uses(name):
    said = header(FILES[name])["KEYS"]
    named = set() if said.startswith("none") else set(said.split())
    assert named == {
        key for key, constant in NAMES.items() if re.search(rf"\b{constant}\b(?! =)", unquoted(FILES[name]))
    }


def test_the_prelude_names_every_key_in_its_place_and_forms_keys_from_the_last_only():
    said = header(FILES["prelude"])["KEYS"]
    assert re.findall(r"^\[(\d+)\] +(\w+)", said, re.MULTILINE) == [
        (str(number), key.removesuffix(":")) for number, key in enumerate(KEYS, 1)
    ]
    assigned = re.findall(r"KEYS\[(\d+)\]", body(FILES["prelude"]))
    lines = re.findall(r"^local ([A-Z, ]+) = KEYS", body(FILES["prelude"]), re.MULTILINE)
    assert assigned == [str(number) for number in range(1, len(KEYS) + 1)]
    assert ", ".join(lines).split(", ") == list(NAMES.values())
    assert not [name for name in FILES.keys() - {"prelude"} if "KEYS[" in body(FILES[name])]


@pytest.mark.parametrize("name", FILES)
def test_the_arguments_it_names_are_the_arguments_it_uses(name):
    said = numbers(header(FILES[name])["ARGV"])
    uses = {int(number) for number in re.findall(r"ARGV\[(\d+)", body(FILES[name]))}
    if name == "members":
        # Whether a clock is handed in, as the prelude says.
        uses -= {1}
    assert said == uses


@pytest.mark.parametrize("name", sorted(FILES.keys() - PARTS))
def test_the_parts_it_uses_are_there_and_each_comes_once(name):
    parts = used(FILES[name])
    assert parts
    assert parts[0] == "prelude"
    assert set(parts) <= PARTS
    assert len(set(parts)) == len(parts)


def test_no_part_is_left_over():
    assert {part for name in FILES.keys() - PARTS for part in used(FILES[name])} == PARTS


@pytest.mark.parametrize("name", FILES)
def test_no_script_looks_at_everything(name):
    assert not GROWS & set(MAY_SPEAK.findall(body(FILES[name])))


@pytest.mark.parametrize("name", FILES)
def test_no_name_is_global_and_no_clock_is_read_but_the_servers(name):
    assigned = re.findall(r"^(\w+) *=[^=]", body(FILES[name]), re.MULTILINE)
    declared = set(re.findall(r"\b[a-z_]\w*\b", " ".join(re.findall(r"local ([\w, ]+)", "\n".join(FILES.values())))))
    assert set(assigned) <= declared
    assert "os." not in body(FILES[name])


def test_a_script_is_its_parts_and_then_itself_without_comments():
    scripts = put_together({"prelude": "-- P\nlocal a = 1", "one": "-- USES prelude\n  return a -- kept"})
    assert scripts["one"].text == "local a = 1\nreturn a -- kept"
