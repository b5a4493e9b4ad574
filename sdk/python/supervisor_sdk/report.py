"""Fields of the plugin's own in what the device tells its cloud, where people read them on the device's page. Capability
`report`.

The supervisor keeps them in memory: a plugin sets them again when it starts, for example on the event `start`.
"""

from wit_world.imports import report as wit

from .capability import answers

_answers = answers()


@_answers
async def set(name: str, value: str | float | bool, *, unit: str | None = None) -> None:
    """Sets a field: `set("level", 63.5, unit="%")`."""
    await wit.set(name, _value(value), unit)


@_answers
async def remove(name: str) -> None:
    """Removes a field; one that is not there is no error."""
    await wit.remove(name)


def _value(value: str | float | bool) -> wit.FieldValue:
    if isinstance(value, bool):
        return wit.FieldValue_Boolean(value)
    if isinstance(value, int | float):
        return wit.FieldValue_Number(float(value))
    if isinstance(value, str):
        return wit.FieldValue_Text(value)
    raise TypeError(f"a field is text, a number or a bool, and not {value!r}")
