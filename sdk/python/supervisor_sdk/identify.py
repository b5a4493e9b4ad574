"""Makes the device identify itself, for example by blinking. Capability `identify`."""

from wit_world.imports import identify as wit

from .capability import answers

_answers = answers()


@_answers
async def run() -> None:
    """Begins or extends the pattern as `POST /v1/blink` does, and returns when it is over, so the plugin needs a
    `wall_ms` above the default. Raises `Internal` if the device cannot identify itself."""
    await wit.identify()
