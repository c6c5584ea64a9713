"""Inflating what a stranger sent: one layer, a cap on bytes and on the ratio, and memory that does not follow a bomb.

Promises: no more than `CAREFUL_BYTES` are inflated before the whole is known to be within its limits; a larger body is
counted first, its inflated bytes thrown away piece by piece, and inflated for keeps only then. Refuses: a second
layer, encodings nobody asked for, streams that are broken, cut off or go on after their end.
"""

import zlib

from sellerwatch.ports.wire import NoAnswerWhy, NoReply

RATIO_MAX = 100
SMALL_BYTES = 64 << 10
"""So much a body may be whatever its ratio: a short text of blanks is no bomb."""
CAREFUL_BYTES = 2 << 20
PIECE_BYTES = 64 << 10

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_BARE = -zlib.MAX_WBITS


def inflate(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its `content-encoding`, or NoReply."""
    layers = [layer for name in encoding.lower().split(",") if (layer := name.strip()) not in {"", "identity"}]
    if not layers:
        return body
    if len(layers) > 1:
        raise NoReply(NoAnswerWhy.TOO_LARGE, f"{len(layers)} layers of compression")
    if layers[0] not in {"gzip", "x-gzip", "deflate"}:
        raise NoReply(NoAnswerWhy.CONNECTION, "a content-encoding that was not asked for")
    if not body:
        return body
    limit = min(max_bytes, max(SMALL_BYTES, RATIO_MAX * len(body)))
    try:
        return _inflated(body, _window_bits(body, layers[0]), limit)
    except zlib.error:
        raise NoReply(NoAnswerWhy.CONNECTION, "a compressed body that can't be inflated") from None


def _window_bits(body: bytes, layer: str) -> int:
    # "deflate" is zlib by the book, and bare deflate from some servers: only the first two bytes tell.
    is_zlib = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0
    return _BARE if layer == "deflate" and not is_zlib else _GZIP_OR_ZLIB


def _inflated(body: bytes, bits: int, limit: int) -> bytes:
    stream = zlib.decompressobj(bits)
    first = stream.decompress(body, min(limit, CAREFUL_BYTES) + 1)
    if len(first) > limit:
        raise _too_large(limit)
    if len(first) <= CAREFUL_BYTES:
        _check_end(stream)
        return first
    del first
    stream = _counted(zlib.decompressobj(bits), body, limit)
    _check_end(stream)
    return zlib.decompress(body, bits)


def _counted(stream: "zlib._Decompress", body: bytes, limit: int) -> "zlib._Decompress":
    count = 0
    # Fed in pieces: what is left over of a piece is copied at each step.
    for start in range(0, len(body), PIECE_BYTES):
        rest = body[start : start + PIECE_BYTES]
        while True:
            got = len(stream.decompress(rest, PIECE_BYTES))
            count += got
            if count > limit:
                raise _too_large(limit)
            rest = stream.unconsumed_tail
            if not rest and got < PIECE_BYTES:
                break
    return stream


def _check_end(stream: "zlib._Decompress") -> None:
    if not stream.eof or stream.unused_data:
        raise NoReply(NoAnswerWhy.CONNECTION, "a compressed body that is cut off, or goes on after its end")


def _too_large(limit: int) -> NoReply:
    return NoReply(NoAnswerWhy.TOO_LARGE, f"inflates to more than {limit} bytes")
