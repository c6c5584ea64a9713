"""JSON without surprises: for bodies and tokens, both from strangers.

Refused, each as ValueError with what is wrong: what is no JSON, a name twice in one object, more than 32 levels, numbers
longer than 20 digits, NaN and infinities, halves of surrogate pairs, bytes that are no UTF-8.
"""

import json
import math
from typing import Any, Final, NoReturn

import orjson

DEPTH_MAX: Final = 32
DIGITS_MAX: Final = 20
FLOAT_MAX: Final = 40


def strict_json(data: bytes) -> Any:
    # orjson first: it stands any depth and size, and refuses NaN, bad UTF-8 and lone surrogates.
    try:
        _check_depth(orjson.loads(data))
        return json.loads(
            data,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except RecursionError:
        raise ValueError(f"is nested deeper than {DEPTH_MAX} levels") from None
    except json.JSONDecodeError:
        raise ValueError("is not JSON") from None


def _check_depth(value: object) -> None:
    level, depth = [value], 0
    while level:
        if depth > DEPTH_MAX:
            raise ValueError(f"is nested deeper than {DEPTH_MAX} levels")
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level, depth = below, depth + 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("has a name twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise ValueError(f"has a number of more than {DIGITS_MAX} digits")
    return int(digits)


def _fraction(text: str) -> float:
    number = float(text)
    if len(text) > FLOAT_MAX or not math.isfinite(number):
        raise ValueError("has a number that is out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"has {name}, which is no number")
