"""Checks what provides a typed action, while the plugin is built."""

import inspect
from collections.abc import Callable


def check_class(provider: type, protocol: type, action: str) -> None:
    """Raises a `TypeError` if a class lacks a method of the action's protocol."""
    if not isinstance(provider, type):
        raise TypeError(f"plugin.toml provides `{action}` with something that is not a class")
    for name, method in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        # A class that inherits from the protocol has its methods, which do nothing.
        if getattr(provider, name, None) in (None, method):
            raise TypeError(f"`{provider.__name__}` provides `{action}` without the method `{name}`")


def check_function(function: Callable, action: str) -> None:
    """Raises a `TypeError` if a function cannot be called without arguments, or yields."""
    name = check_result(function, action)
    try:
        inspect.signature(function).bind()
    except TypeError:
        raise TypeError(f"`{name}` provides `{action}`, so it must have no parameters") from None


def check_result(function: Callable, action: str) -> str:
    """Returns the name of a function. Raises a `TypeError` if it yields, since its body would not run."""
    if not callable(function):
        raise TypeError(f"plugin.toml provides `{action}` with something that is not a function")
    name = getattr(function, "__name__", action)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"`{name}` provides `{action}` and yields, but nothing reads its values")
    return name
