"""The files of a plugin that does not ask for the capability `files`. `routes.py`, which the build writes, imports this module
before such a plugin.

Without the capability, a file would end a call without a reason. So `open` and the functions of `os` that take a path raise
an error in a call, which is an `OSError`: a module that can do without a file does so. While the plugin is imported they work,
and find the plugin's sources.
"""

import builtins
import functools
import io
import os
from collections.abc import Callable

from . import sealing

_OF_OS = [
    "access",
    "chdir",
    "chmod",
    "link",
    "listdir",
    "lstat",
    "mkdir",
    "open",
    "readlink",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "scandir",
    "stat",
    "symlink",
    "truncate",
    "unlink",
    "utime",
]


def _checked(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*arguments, **named):
        if sealing.is_serving:
            raise PermissionError(
                f"the plugin calls `{function.__name__}` without asking for files: add `files = \"why\"` to [capabilities] of"
                " plugin.toml"
            )
        return function(*arguments, **named)

    return call


builtins.open = io.open = _checked(open)
for _name in _OF_OS:
    # Not every system has all of them.
    if hasattr(os, _name):
        setattr(os, _name, _checked(getattr(os, _name)))
