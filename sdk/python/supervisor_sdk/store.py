"""The plugin's own small store, which outlives its instances and restarts of the supervisor. Capability `store`.

Keys are at most 256 bytes, values at most 64 KiB, all of them together at most 1 MiB and 10,000 keys for one plugin.
A value is `bytes`, or text, which is stored as UTF-8. Exceeding a limit raises `TooLarge`.
"""

import json
from collections.abc import Callable
from typing import Any

from wit_world.imports import store as wit

from .capability import answers, bytes_of, milliseconds
from .errors import Internal, TooLarge

_answers = answers(TooLarge=TooLarge)


@_answers
async def get(key: str) -> bytes | None:
    """Reads the value of `key`, or returns `None` if there is none."""
    return await wit.get(key)


@_answers
async def set(key: str, value: bytes | str) -> None:
    """Sets `key`. The write has reached the disk when this returns."""
    await wit.set(key, bytes_of(value))


@_answers
async def set_for(key: str, value: bytes | str, seconds: float) -> None:
    """Sets `key` for this long by the device's clock, to the millisecond; after that the key no longer exists."""
    await wit.set_for(key, bytes_of(value), milliseconds(seconds))


@_answers
async def compare_and_set(
    key: str, expected: bytes | str | None, value: bytes | str | None, seconds: float | None = None
) -> bool:
    """Sets `key` to `value`, or removes it if that is `None`, but only if the key has the value `expected` (`None`:
    does not exist). Returns whether it did; `update` tries this until it succeeds."""
    lifetime = None if seconds is None else milliseconds(seconds)
    return await wit.compare_and_set(key, _optional(expected), _optional(value), lifetime)


async def update(key: str, change: Callable[[bytes | None], bytes | str | None]) -> bytes | None:
    """Changes the value of `key` without losing changes that other calls make at the same time.

    `change` receives the value, and returns the new one; `None` stands for a missing key. It is called again if the
    value has changed in the meantime. Returns the value that was set::

        calls = int(await store.update("calls", lambda calls: str(int(calls or 0) + 1)))
    """
    while True:
        before = await get(key)
        after = _optional(change(before))
        if await compare_and_set(key, before, after):
            return after


@_answers
async def delete(key: str) -> None:
    """Removes `key`; a missing key is not an error."""
    await wit.delete(key)


@_answers
async def keys(prefix: str = "") -> list[str]:
    """Lists the keys that begin with `prefix`, sorted."""
    return await wit.keys(prefix)


async def get_json(key: str) -> Any:
    """Reads the value of `key` that `set_json` wrote; `None` if there is none."""
    value = await get(key)
    return None if value is None else _from_json(key, value)


async def set_json(key: str, value: Any) -> None:
    """Sets `key` to a value in JSON."""
    await set(key, json.dumps(value, ensure_ascii=False))


async def update_json(key: str, change: Callable[[Any], Any]) -> Any:
    """Like `update`, with values in JSON. `change` receives `None` if there is no value::

        calls = await store.update_json("calls", lambda calls: (calls or 0) + 1)
    """
    while True:
        before = await get(key)
        after = change(None if before is None else _from_json(key, before))
        if await compare_and_set(key, before, json.dumps(after, ensure_ascii=False)):
            return after


def _from_json(key: str, value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise Internal(f"the value of `{key}` has an unexpected form: {error}") from None


def _optional(value: bytes | str | None) -> bytes | None:
    return None if value is None else bytes_of(value)
