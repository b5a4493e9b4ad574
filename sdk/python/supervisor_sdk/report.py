"""The plugin's own fields in the device's report to its cloud, where people read them on the device's page. Capability
`report`.

The supervisor keeps them in memory: set them again after a start, for example on the event `start`.
"""

from wit_world.imports import report as wit

from .capability import answers

_answers = answers()


@_answers
async def set(name: str, value: str | float | bool, *, unit: str | None = None) -> None:
    """Sets a field: `set("level", 63.5, unit="%")`. A value is one line of text of at most 256 bytes, a finite number or
    a `bool`; a unit has at most 16 bytes. Raises `TypeError` for other values."""
    await wit.set(name, _value(value), unit)


@_answers
async def remove(name: str) -> None:
    """Removes a field; a missing field is not an error."""
    await wit.remove(name)


def _value(value: str | float | bool) -> wit.FieldValue:
    if isinstance(value, bool):
        return wit.FieldValue_Boolean(value)
    if isinstance(value, int | float):
        return wit.FieldValue_Number(float(value))
    if isinstance(value, str):
        return wit.FieldValue_Text(value)
    raise TypeError(f"a field is text, a number or a bool, not {value!r}")
