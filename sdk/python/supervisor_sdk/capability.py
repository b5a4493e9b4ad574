"""Turns the errors of capabilities into those of the module `errors`."""

import inspect
from collections.abc import Callable
from functools import wraps

from componentize_py_types import Err

from . import json_text
from .errors import Error, Internal

_SHOWN = 64
"""The number of characters of a refused value that an error shows."""


def whole_number(value: int, bits: int = 64) -> int:
    """Checks a number for the interface. The interpreter ends the plugin if a number does not fit."""
    if not isinstance(value, int) or not 0 <= value < 2**bits:
        raise ValueError(f"{value!r} is not a whole number from 0 to {2**bits - 1}")
    return value


def boolean(value: bool) -> bool:
    """Checks a flag for the interface. The interpreter would treat `"off"` as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither True nor False")
    return value


def text(value: str) -> str:
    """Checks a text for the interface, and returns it with U+FFFD for halves of surrogate pairs. The interpreter ends the
    plugin if it receives anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return json_text.valid(value)


def bytes_of(value: bytes | str) -> bytes:
    """Converts text or bytes to the bytes that the interface expects. `bytes(5)` would be five zeros, and the interpreter
    ends the plugin if it receives anything else."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(f"{repr(value)[:_SHOWN]} is neither text nor bytes") from None


def milliseconds(seconds: float, bits: int = 64) -> int:
    """Converts seconds to the milliseconds that the interface expects."""
    return whole_number(round(seconds * 1000), bits)


def answers(**classes: type[Error]):
    """Decorates the functions of a capability: the case `TooLarge` of its error is raised as the class that `TooLarge=`
    names, and a case without a class as `Internal`."""

    def error_of(raised: Err) -> Error:
        # `StoreError_TooLarge` is the class of the case `too-large` of `store-error`.
        case = type(raised.value).__name__.rpartition("_")[2]
        text = getattr(raised.value, "value", raised.value)
        return classes.get(case, Internal)(text)

    def decorate(function: Callable):
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call(*arguments, **named):
                try:
                    return await function(*arguments, **named)
                except Err as raised:
                    raise error_of(raised) from None
        else:

            @wraps(function)
            def call(*arguments, **named):
                try:
                    return function(*arguments, **named)
                except Err as raised:
                    raise error_of(raised) from None

        return call

    return decorate
