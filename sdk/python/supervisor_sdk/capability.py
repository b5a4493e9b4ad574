"""Turns what a capability raises into the errors of `errors`."""

import inspect
from collections.abc import Callable
from functools import wraps

from componentize_py_types import Err

from .errors import Error, Internal


def whole_number(value: int, bits: int = 64) -> int:
    """A number that the interface takes. The interpreter ends the plugin at one that does not fit."""
    if not isinstance(value, int) or not 0 <= value < 2**bits:
        raise ValueError(f"{value!r} is not a whole number from 0 to {2**bits - 1}")
    return value


def boolean(value: bool) -> bool:
    """A flag that the interface takes. The interpreter would take `"off"` for true."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither True nor False")
    return value


def milliseconds(seconds: float, bits: int = 64) -> int:
    """A time that the interface takes, from seconds."""
    return whole_number(round(seconds * 1000), bits)


def answers(**classes: type[Error]):
    """Decorates the functions of a capability: the case `TooLarge` of its error is raised as what `TooLarge=` names,
    and one that is not named as `Internal`."""

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
