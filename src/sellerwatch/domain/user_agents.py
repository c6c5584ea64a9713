"""User-Agent strings for new identities: what the browsers and apps of Korean shoppers send in late 2026.

Promises: the same list each time, all distinct, each one a string that a real browser of that version sends on that
platform; any first part of the list is a mix of all families. Refuses: more than there are.

Where the parts come from:
- Chromium browsers send a reduced string: only the major version is true, the platform is frozen (`Windows NT 10.0`,
  `Mac OS X 10_15_7`, `Android 10; K`). Chrome and Edge bring a version every two weeks since 153 (September 2026).
- Firefox says `Mac OS X 10.15` on every Mac and the true version on Android; it is at a two-week pace too.
- Safari 26 and 27 say `Mac OS X 10_15_7` and `iPhone OS 18_7`, whatever the system is.
- Samsung Internet and Whale are built on an older Chromium: the pairs below belong together.
- Apps embed a WebView, which tells the device and its build: a model appears only with an Android it was updated to.
When these versions have grown old, change the tables; the next migration seeds the new strings.
"""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

from sellerwatch.domain.errors import Invalid

BLINK: Final = "AppleWebKit/537.36 (KHTML, like Gecko)"
WEBKIT: Final = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
WINDOWS: Final = "Windows NT 10.0; Win64; x64"
MAC: Final = "Macintosh; Intel Mac OS X 10_15_7"
LINUX: Final = "X11; Linux x86_64"
CHROMEBOOK: Final = "X11; CrOS x86_64 14541.0.0"
ANDROID: Final = "Linux; Android 10; K"
IPHONE: Final = "iPhone; CPU iPhone OS 18_7 like Mac OS X"

CHROME: Final = ("157", "156")
EDGE: Final = ("156", "155")
FIREFOX: Final = ("160", "159")
SAFARI: Final = ("27.0", "26.6", "26.5")
SAMSUNG: Final = (("30.0", "143"), ("29.0", "136"))  # Samsung Internet and the Chromium in it
WHALE: Final = (("4.39.410.13", "150"), ("4.38.386.14", "148"), ("4.38.386.12", "148"))
KAKAOTALK: Final = ("26.8.1", "26.7.3", "26.7.1")
WEBVIEW: Final = ("155.0.8059.24", "154.0.8037.52", "153.0.8010.36")
# The NAVER app for Android brings its own engine: engine, Chromium in it, versions of the app.
NAVER_ANDROID: Final = (
    ("30.140.0.10", "140", "12.23.81"),
    ("29.128.0.31", "128", "12.23.50"),
    ("29.128.0.31", "128", "12.23.1"),
)
NAVER_IPHONE: Final = ("12.23.72", "12.23.1")

ANDROID_17: Final = "Android 17; {} Build/CP2A.260605.016"
ANDROID_16_QPR: Final = "Android 16; {} Build/BP4A.251205.006"
ANDROID_16: Final = "Android 16; {} Build/BP2A.250605.031.A3"
ANDROID_15: Final = "Android 15; {} Build/AP3A.240905.015.A2"
# Korean Galaxy models (N) and the build each was last updated to.
GALAXIES: Final = (
    ("SM-S948N", ANDROID_16_QPR),  # S26 Ultra
    ("SM-S947N", ANDROID_16_QPR),  # S26+
    ("SM-S942N", ANDROID_16_QPR),  # S26
    ("SM-S938N", ANDROID_16_QPR),  # S25 Ultra
    ("SM-S937N", ANDROID_16_QPR),  # S25 Edge
    ("SM-S936N", ANDROID_16_QPR),  # S25+
    ("SM-S931N", ANDROID_16_QPR),  # S25
    ("SM-S928N", ANDROID_16_QPR),  # S24 Ultra
    ("SM-S926N", ANDROID_16_QPR),  # S24+
    ("SM-S921N", ANDROID_16_QPR),  # S24
    ("SM-S918N", ANDROID_16_QPR),  # S23 Ultra
    ("SM-S916N", ANDROID_16_QPR),  # S23+
    ("SM-S911N", ANDROID_16_QPR),  # S23
    ("SM-S908N", ANDROID_16),  # S22 Ultra
    ("SM-S906N", ANDROID_16),  # S22+
    ("SM-S901N", ANDROID_16),  # S22
    ("SM-G998N", ANDROID_15),  # S21 Ultra
    ("SM-G991N", ANDROID_15),  # S21
    ("SM-F976N", ANDROID_17),  # Z Fold8
    ("SM-F971N", ANDROID_17),  # another foldable of 2026
    ("SM-F776N", ANDROID_17),  # Z Flip8
    ("SM-F966N", ANDROID_16_QPR),  # Z Fold7
    ("SM-F956N", ANDROID_16_QPR),  # Z Fold6
    ("SM-F766N", ANDROID_16_QPR),  # Z Flip7
    ("SM-F741N", ANDROID_16_QPR),  # Z Flip6
    ("SM-F731N", ANDROID_16_QPR),  # Z Flip5
    ("SM-F721N", ANDROID_16),  # Z Flip4
    ("SM-F711N", ANDROID_15),  # Z Flip3
    ("SM-S731N", ANDROID_16_QPR),  # S25 FE
    ("SM-S721N", ANDROID_16_QPR),  # S24 FE
)
# iPhones that run iOS 26, by the names the NAVER app gives them.
IPHONES: Final = ("16PROMAX", "16PRO", "15PROMAX", "15PRO", "14PROMAX", "14PRO", "13MINI", "12MINI")


def user_agents(count: int = 100) -> list[str]:
    """The first `count` strings, drawn from the families in turn."""
    drawn = [string for turn in zip_longest(*_families()) for string in turn if string is not None]
    if not 1 <= count <= len(drawn):
        raise Invalid("count", count, f"from 1 to {len(drawn)}")
    return drawn[:count]


def _families() -> tuple[Iterator[str], ...]:
    return (
        _chrome(),
        _kakaotalk_android(),
        _safari(),
        _naver_android(),
        chain(_edge(), _whale()),
        chain(_samsung(), _kakaotalk_iphone()),
        chain(_firefox(), _naver_iphone()),
    )


def _chrome() -> Iterator[str]:
    for version in CHROME:
        for platform in (WINDOWS, MAC, LINUX, CHROMEBOOK):
            yield f"Mozilla/5.0 ({platform}) {BLINK} Chrome/{version}.0.0.0 Safari/537.36"
        yield f"Mozilla/5.0 ({ANDROID}) {BLINK} Chrome/{version}.0.0.0 Mobile Safari/537.36"
        # A tablet leaves out "Mobile".
        yield f"Mozilla/5.0 ({ANDROID}) {BLINK} Chrome/{version}.0.0.0 Safari/537.36"


def _edge() -> Iterator[str]:
    for version in EDGE:
        for platform in (WINDOWS, MAC):
            yield f"Mozilla/5.0 ({platform}) {BLINK} Chrome/{version}.0.0.0 Safari/537.36 Edg/{version}.0.0.0"
        yield f"Mozilla/5.0 ({ANDROID}) {BLINK} Chrome/{version}.0.0.0 Mobile Safari/537.36 EdgA/{version}.0.0.0"


def _firefox() -> Iterator[str]:
    for version in FIREFOX:
        for platform in (WINDOWS, "Macintosh; Intel Mac OS X 10.15", LINUX):
            yield f"Mozilla/5.0 ({platform}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"
        for android in ("16", "15"):
            yield f"Mozilla/5.0 (Android {android}; Mobile; rv:{version}.0) Gecko/{version}.0 Firefox/{version}.0"


def _safari() -> Iterator[str]:
    for version in SAFARI:
        yield f"Mozilla/5.0 ({IPHONE}) {WEBKIT} Version/{version} Mobile/15E148 Safari/604.1"
        yield f"Mozilla/5.0 ({MAC}) {WEBKIT} Version/{version} Safari/605.1.15"


def _samsung() -> Iterator[str]:
    for version, chromium in SAMSUNG:
        engine = f"{BLINK} SamsungBrowser/{version} Chrome/{chromium}.0.0.0"
        yield f"Mozilla/5.0 ({ANDROID}) {engine} Mobile Safari/537.36"
        # The desktop view of tablets and unfolded phones.
        yield f"Mozilla/5.0 ({LINUX}) {engine} Safari/537.36"


def _whale() -> Iterator[str]:
    for version, chromium in WHALE:
        for platform in (WINDOWS, MAC):
            yield f"Mozilla/5.0 ({platform}) {BLINK} Chrome/{chromium}.0.0.0 Whale/{version} Safari/537.36"


def _kakaotalk_android() -> Iterator[str]:
    # Each model once per round; WebView and app are updated apart from each other.
    for turn in range(len(KAKAOTALK)):
        for place, (model, build) in enumerate(GALAXIES):
            webview = WEBVIEW[(place + turn) % len(WEBVIEW)]
            app = KAKAOTALK[(place // len(WEBVIEW) + turn) % len(KAKAOTALK)]
            device = f"Linux; {build.format(model)}; wv"
            yield (
                f"Mozilla/5.0 ({device}) {BLINK} Version/4.0 Chrome/{webview} Mobile Safari/537.36"
                f" KAKAOTALK/{app} (INAPP)"
            )


def _naver_android() -> Iterator[str]:
    for turn in range(len(NAVER_ANDROID)):
        # From the other end than above, so that the first of both lists are different telephones.
        for place, (model, build) in enumerate(reversed(GALAXIES)):
            engine, chromium, app = NAVER_ANDROID[(place + turn) % len(NAVER_ANDROID)]
            device = f"Linux; {build.format(model)}; wv"
            yield (
                f"Mozilla/5.0 ({device}) {BLINK} Version/4.0 Chrome/{chromium}.0.0.0 Whale/1.0.0.0"
                f" Crosswalk/{engine} Mobile Safari/537.36 NAVER(inapp; search; 2100; {app})"
            )


def _kakaotalk_iphone() -> Iterator[str]:
    for app in KAKAOTALK:
        yield f"Mozilla/5.0 ({IPHONE}) {WEBKIT} Mobile/15E148 Safari/604.1 KAKAOTALK/{app} (INAPP)"


def _naver_iphone() -> Iterator[str]:
    for app in NAVER_IPHONE:
        for model in IPHONES:
            yield (
                f"Mozilla/5.0 ({IPHONE}) {WEBKIT} Version/26.6 Mobile/15E148 Safari/605.1"
                f" NAVER(inapp; search; 2100; {app}; {model})"
            )
