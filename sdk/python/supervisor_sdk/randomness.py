"""Random numbers, which a plugin gets with the capability `random`.

The build imports the plugin, and each call begins where the import ended: the generator of the module `random` would give
every call the same numbers, and without the capability the operating system has none. So the functions of `os`, `random`,
`secrets` and `uuid` that need them raise an error then. With the capability, componentize-py seeds the generator at the
beginning of each call.

While the plugin is imported, all of them work, because some modules use them then. The result is the same in every call.
"""

import functools
import os
import random
from collections.abc import Callable

is_granted = False
"""Whether `plugin.toml` asks for the capability; `routes.py`, which the build writes, sets it."""

_is_serving = False


def begin() -> None:
    """Refuses random numbers from now on, unless the plugin asks for them. Called for each request."""
    global _is_serving
    _is_serving = True
    # `gauss` keeps every second number for later.
    random._inst.gauss_next = None


def _check() -> None:
    if _is_serving and not is_granted:
        raise RuntimeError(
            "the plugin uses random numbers without asking for them, so they would be the same in every call: add"
            " `random = \"why\"` to [capabilities] of plugin.toml, or use `random.Random(SEED)`"
        )


def _checked(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*arguments, **named):
        _check()
        return function(*arguments, **named)

    return call


_seed = random.Random.seed


def _checked_seed(self, a=None, version=2):
    if a is None:
        _check()
    _seed(self, a, version)


# `secrets`, `uuid` and `random.SystemRandom` call `os.urandom`; the other functions of `random` call these two.
os.urandom = random._urandom = _checked(os.urandom)
random.random = random._inst.random = _checked(random._inst.random)
random.getrandbits = random._inst.getrandbits = _checked(random._inst.getrandbits)
random.Random.seed = _checked_seed
random.seed = random._inst.seed
