"""User agents: a hundred believable strings, the same each time."""

import hashlib
import re
from itertools import islice

import pytest

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.user_agents import GALAXIES, user_agents

BLINK = r"AppleWebKit/537\.36 \(KHTML, like Gecko\)"
WEBKIT = r"AppleWebKit/605\.1\.15 \(KHTML, like Gecko\)"
DESKTOP = r"(?:Windows NT 10\.0; Win64; x64|Macintosh; Intel Mac OS X 10_15_7)"
ANDROID = r"Linux; Android 10; K"
DEVICE = r"Linux; Android 1[5-7]; SM-[A-Z]\d{3}N Build/[A-Z0-9]{4}\.\d{6}\.\d{3}(?:\.[A-Z]\d)?; wv"
IPHONE = r"iPhone; CPU iPhone OS 18_7 like Mac OS X"
FAMILIES = {
    "chrome": rf"\((?:{DESKTOP}|X11; Linux x86_64|X11; CrOS x86_64 14541\.0\.0)\) {BLINK} Chrome/15\d\.0\.0\.0 Safari/537\.36",
    "chrome on android": rf"\({ANDROID}\) {BLINK} Chrome/15\d\.0\.0\.0 (?:Mobile )?Safari/537\.36",
    "edge": rf"\({DESKTOP}\) {BLINK} Chrome/(15\d)\.0\.0\.0 Safari/537\.36 Edg/\1\.0\.0\.0",
    "edge on android": rf"\({ANDROID}\) {BLINK} Chrome/(15\d)\.0\.0\.0 Mobile Safari/537\.36 EdgA/\1\.0\.0\.0",
    "firefox": r"\((?:Windows NT 10\.0; Win64; x64|Macintosh; Intel Mac OS X 10\.15|X11; Linux x86_64); "
    r"rv:(1\d\d\.0)\) Gecko/20100101 Firefox/\1",
    "firefox on android": r"\(Android 1[56]; Mobile; rv:(1\d\d\.0)\) Gecko/\1 Firefox/\1",
    "safari": rf"\(Macintosh; Intel Mac OS X 10_15_7\) {WEBKIT} Version/2[67]\.\d Safari/605\.1\.15",
    "safari on iphone": rf"\({IPHONE}\) {WEBKIT} Version/2[67]\.\d Mobile/15E148 Safari/604\.1",
    "samsung internet": rf"\((?:{ANDROID}\) {BLINK} SamsungBrowser/(?:30\.0 Chrome/143|29\.0 Chrome/136)\.0\.0\.0 Mobile"
    rf"|X11; Linux x86_64\) {BLINK} SamsungBrowser/(?:30\.0 Chrome/143|29\.0 Chrome/136)\.0\.0\.0) Safari/537\.36",
    "whale": rf"\({DESKTOP}\) {BLINK} Chrome/(?:150\.0\.0\.0 Whale/4\.39|148\.0\.0\.0 Whale/4\.38)\.\d{{3}}\.\d\d Safari/537\.36",
    "kakaotalk": rf"\({DEVICE}\) {BLINK} Version/4\.0 Chrome/15\d\.0\.\d{{4}}\.\d\d Mobile Safari/537\.36"
    r" KAKAOTALK/26\.\d\.\d \(INAPP\)",
    "kakaotalk on iphone": rf"\({IPHONE}\) {WEBKIT} Mobile/15E148 Safari/604\.1 KAKAOTALK/26\.\d\.\d \(INAPP\)",
    "naver": rf"\({DEVICE}\) {BLINK} Version/4\.0 Chrome/(1\d\d)\.0\.0\.0 Whale/1\.0\.0\.0 Crosswalk/\d\d\.\1\.0\.\d\d"
    r" Mobile Safari/537\.36 NAVER\(inapp; search; 2100; 12\.\d\d\.\d+\)",
    "naver on iphone": rf"\({IPHONE}\) {WEBKIT} Version/26\.\d Mobile/15E148 Safari/605\.1"
    r" NAVER\(inapp; search; 2100; 12\.\d\d\.\d+; 1[2-6](?:PRO|PROMAX|MINI)\)",
}


def test_there_are_a_hundred_distinct_ones():
    strings = user_agents()
    assert len(strings) == len(set(strings)) == 100


@pytest.mark.parametrize("string", user_agents())
def test_each_is_of_exactly_one_family_and_fits_its_column(string):
    families = [name for name, grammar in FAMILIES.items() if re.fullmatch("Mozilla/5\\.0 " + grammar, string)]
    assert len(families) == 1, string
    assert len(string) <= 500
    assert string.isascii()
    assert string.isprintable()


def test_every_family_is_there():
    strings = user_agents()
    missing = [
        name
        for name, grammar in FAMILIES.items()
        if not any(re.fullmatch(r"Mozilla/5\.0 " + grammar, s) for s in strings)
    ]
    assert missing == []


def test_the_list_is_the_same_each_time():
    # A migration seeds these: whoever changes the tables changes what new installations get, knowingly.
    assert user_agents() == user_agents()
    assert hashlib.sha256("\n".join(user_agents()).encode()).hexdigest() == DIGEST


def test_a_shorter_list_is_the_beginning_of_a_longer_one():
    assert user_agents(10) == list(islice(user_agents(), 10))


def test_a_model_appears_with_one_build_only():
    builds = {}
    for string in user_agents(150):
        for model, build in re.findall(r"; (SM-\w+) (Build/\S+);", string):
            builds.setdefault(model, set()).add(build)
    assert all(len(seen) == 1 for seen in builds.values())
    assert set(builds) <= {model for model, _ in GALAXIES}


@pytest.mark.parametrize("count", [0, -1, 100_000])
def test_more_than_there_are_is_refused(count):
    with pytest.raises(Invalid, match="count"):
        user_agents(count)


DIGEST = "c7996eea7a9781ab1a8bc98d2199930b9d01bb47d6c36669086e0b74dfa2114b"
