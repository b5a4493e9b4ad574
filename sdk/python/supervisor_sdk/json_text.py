"""Reads JSON of a caller, who may be hostile.

The interpreter's own parser calls itself for each level of a value. In the sandbox it runs out of stack before Python
notices, and the call ends as a failure of the plugin, although only the caller is to blame.
"""

import json
import math
import re
from typing import Any

DEPTH = 128
"""How deep lists and objects may be nested."""

_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SURROGATES = re.compile("[\ud800-\udfff]")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(content: bytes) -> Any:
    """Parses JSON. Raises a `ValueError` whose text continues a sentence such as "the body …": it is not JSON, it is
    nested too deep, a number in it is not finite, or a text in it contains half of a surrogate pair, which no answer, log
    line or key of the store can contain."""
    # Some editors and shells write a byte-order mark (RFC 8259, section 8.1).
    content = content.removeprefix(b"\xef\xbb\xbf")
    if _is_too_deep(content):
        raise ValueError(f"is nested more than {DEPTH} deep")
    not_finite = []

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            not_finite.append(text)
        return value

    try:
        # The parser accepts `NaN` and `Infinity`, which JSON does not have, and reads `1e999` as infinity.
        value = json.loads(content.decode(), parse_float=number, parse_constant=number)
    except ValueError as error:
        raise ValueError(f"is not JSON: {str(error)[:200]}") from None
    if not_finite:
        path = _path_of_not_finite(value) or []
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
        place = f" in field `{place[:200]}`" if place else ""
        raise ValueError(f"has the number `{not_finite[0][:64]}`{place}, which is not finite")
    if _HALF.search(content):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("contains half of a surrogate pair, which is not text") from None
    return value


def _path_of_not_finite(value: Any) -> list[str | int] | None:
    """Returns the names and indexes that lead to a number that is infinite or `NaN`, if there is one."""
    match value:
        case float():
            return None if math.isfinite(value) else []
        case dict():
            entries = value.items()
        case list():
            entries = enumerate(value)
        case _:
            return None
    for name, entry in entries:
        path = _path_of_not_finite(entry)
        if path is not None:
            return [name, *path]
    return None


def _is_too_deep(content: bytes) -> bool:
    if content.count(b"[") + content.count(b"{") <= DEPTH:
        return False
    # Each step is one pass of the interpreter's own code: a loop over the bytes would take a second for a megabyte.
    outside = b"".join(content.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside.translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(DEPTH):
        inner = brackets.replace(b"[]", b"")
        if len(inner) == len(brackets):
            break
        brackets = inner
    # What is left has more levels, or brackets without a partner.
    return b"[]" in brackets or len(brackets) - len(brackets.lstrip(b"[")) > DEPTH


def valid(text: str) -> str:
    """Returns the text with U+FFFD for each half of a surrogate pair, which the interface does not accept."""
    return _SURROGATES.sub("\ufffd", text)
