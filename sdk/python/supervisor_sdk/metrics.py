"""The plugin's own gauges and counters, which `GET /metrics` shows. Capability `metrics`."""

from wit_world.imports import metrics as wit

from .capability import answers, whole_number

_answers = answers()


@_answers
async def set_gauge(name: str, value: float, **labels: str) -> None:
    """Sets a gauge, which is any finite number: `set_gauge("level", 0.7, tank="north")`."""
    await wit.set_gauge(name, _labels(labels), float(value))


@_answers
async def add_to_counter(name: str, increment: int = 1, **labels: str) -> None:
    """Adds to a counter, which begins at 0. By convention the name of a counter ends in `_total`."""
    await wit.add_to_counter(name, _labels(labels), whole_number(increment))


def _labels(labels: dict[str, str]) -> list[wit.Label]:
    return [wit.Label(name, str(value)) for name, value in labels.items()]
