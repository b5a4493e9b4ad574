"""The device's LEDs, by their names in the kernel's LED class. Capability `led`; the policy may limit them."""

from wit_world.imports import led as wit

from .capability import answers, whole_number
from .errors import Conflict, NotFound

_answers = answers(NotFound=NotFound, Busy=Conflict)


@_answers
def names() -> list[str]:
    """Lists the existing and granted LEDs, sorted."""
    return wit.names()


class Light:
    """One LED, for as long as the `with` block lasts; after that the LED returns to its earlier state::

        with led.Light("ACT") as light:
            light.on()
            await timer.sleep(1)
    """

    @_answers
    def __init__(self, name: str):
        self._light = wit.Light.open(name)

    @property
    def max(self) -> int:
        """The highest brightness; the lowest is 0."""
        return self._light.max()

    @_answers
    def set(self, brightness: int) -> None:
        """Sets the brightness; values above `max` count as `max`."""
        self._light.set(whole_number(brightness, 32))

    def on(self) -> None:
        """Sets the highest brightness."""
        self.set(0xFFFF_FFFF)

    def off(self) -> None:
        """Sets the brightness to 0."""
        self.set(0)

    def __enter__(self) -> "Light":
        self._light.__enter__()
        return self

    def __exit__(self, *raised) -> None:
        self._light.__exit__(*raised)
