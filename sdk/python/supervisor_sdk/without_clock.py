"""The clocks of Python in a plugin that does not ask for the capability `clock`. `routes.py`, which the build writes, imports
this module before such a plugin.

Without the capability, a clock would end a call without a reason. So the functions of `time` and `datetime` that read one
or wait for one raise an error in a call. While the plugin is imported they work, because some modules use them then; the
result is the time of the build.
"""

import datetime
import functools
import gc
import time
from collections.abc import Callable

from . import sealing

_READS = [
    "clock_gettime",
    "clock_gettime_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "thread_time_ns",
    "time",
    "time_ns",
]
_FORMATS = {"asctime": 0, "ctime": 0, "gmtime": 0, "localtime": 0, "strftime": 1}
"""The functions that read a clock if the argument at this position is missing or `None`."""

_ADD = 'add `clock = "why"` to [capabilities] of plugin.toml'


def _check() -> None:
    if sealing.is_serving:
        raise RuntimeError(f"the plugin reads a clock without asking for it: {_ADD}")


def _checked(function: Callable, position: int = 0) -> Callable:
    """Returns the function with a check, unless the caller passes a time at this position."""

    @functools.wraps(function)
    def call(*arguments, **named):
        if function.__name__ not in _FORMATS or len(arguments) <= position or arguments[position] is None:
            _check()
        return function(*arguments, **named)

    return call


def _checked_method(method) -> classmethod:
    @functools.wraps(method)
    def call(cls, *arguments, **named):
        _check()
        return method.__get__(None, cls)(*arguments, **named)

    return classmethod(call)


_sleep = time.sleep


@functools.wraps(_sleep)
def _checked_sleep(seconds):
    if sealing.is_serving:
        raise RuntimeError(
            "the plugin waits for a clock without asking for it: use `await timer.sleep(SECONDS)` of `supervisor_sdk`, which"
            f" needs no capability, or {_ADD}"
        )
    _sleep(seconds)


for _name in _READS:
    # Not every system has all of them.
    if hasattr(time, _name):
        setattr(time, _name, _checked(getattr(time, _name)))
for _name, _position in _FORMATS.items():
    setattr(time, _name, _checked(getattr(time, _name), _position))
time.sleep = _checked_sleep

# The class is written in C, so its attributes cannot be set, and a subclass would not be the class of what other modules
# return. `today`, of this class and of `date`, calls `time.time`.
_of_datetime = gc.get_referents(datetime.datetime.__dict__)[0]
for _name in ["now", "utcnow"]:
    _of_datetime[_name] = _checked_method(_of_datetime[_name])
