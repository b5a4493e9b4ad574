"""The plugin's own gauges and counters, which `GET /metrics` shows. Capability `metrics`."""

from wit_world.imports import metrics as wit

from .capability import answers, whole_number

_answers = answers()


@_answers
async def set_gauge(name: str, value: float, **labels: str) -> None:
    """Sets a gauge, which is any finite number: `set_gauge("level", 0.7, tank="north")`.

    A name has lower-case letters, digits and single `_`, and at most 64 characters, that of a label at most 32. There
    are at most 4 labels with values of at most 128 bytes, and 100 series for one plugin.
    """
    await wit.set_gauge(name, _labels(labels), float(value))


@_answers
async def add_to_counter(name: str, increment: int = 1, **labels: str) -> None:
    """Adds to a counter, which begins at 0: `add_to_counter("refills_total", tank="north")`. By convention the name of a
    counter ends in `_total`."""
    await wit.add_to_counter(name, _labels(labels), whole_number(increment))


def _labels(labels: dict[str, str]) -> list[wit.Label]:
    return [wit.Label(name, str(value)) for name, value in labels.items()]
