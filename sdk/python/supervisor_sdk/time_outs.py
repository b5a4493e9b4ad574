"""Time-outs of `asyncio`, which need a clock of the event loop. The loop of a component has none, with the capability `clock`
or without it, and does not say so."""

from componentize_py_async_support import _Loop


def _refuse(*_arguments, **_named):
    raise NotImplementedError(
        "`asyncio.sleep` and the time-outs of `asyncio` do not work in a plugin: use `await timer.sleep(SECONDS)` of"
        " `supervisor_sdk`, which needs no capability"
    )


def explain() -> None:
    """Makes the loop say what to use instead."""
    _Loop.call_at = _Loop.call_later = _Loop.time = _refuse
