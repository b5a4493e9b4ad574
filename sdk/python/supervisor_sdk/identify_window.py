"""How long the device continues to identify itself, for plugins that provide the action `identify`.

A provider is a function that `identify` in `[provides]` of `plugin.toml` names. It shows a pattern until nothing is left of
the time, and then returns; the device ends it soon after::

    from supervisor_sdk import gpio, identify_window, timer

    async def blink():
        while identify_window.remaining() > 0:
            await gpio.write("lamp", True)
            await timer.sleep(0.25)
            await gpio.write("lamp", False)
            await timer.sleep(0.25)

An error that it raises, such as `Unavailable`, says why the device cannot be shown.
"""

from wit_world.imports import identify_window as wit


def remaining() -> float:
    """Returns the seconds that are left. Call this at each step of the pattern, since a second request extends the
    time."""
    return wit.remaining_ms() / 1000
