"""The plugin's own gauges and counters, which `GET /metrics` shows. Capability `metrics`."""

import inspect
from collections.abc import Callable
from functools import wraps

from wit_world.imports import metrics as wit

from .capability import answers, whole_number

_answers = answers()


def _also_by_name(function: Callable) -> Callable:
    """Decorates a function whose parameters are given by place, so that labels may have their names: a parameter that is
    not given by place may be given by name, as plugins do that were written when labels could not have these names."""
    kinds = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in kinds if parameter.kind is parameter.POSITIONAL_ONLY]

    @wraps(function)
    async def call(*given, **labels):
        for name in names[len(given) :]:
            if name not in labels:
                break
            given += (labels.pop(name),)
        return await function(*given, **labels)

    return call


@_also_by_name
@_answers
async def set_gauge(name: str, value: float, /, **labels: str) -> None:
    """Sets a gauge, which is any finite number: `set_gauge("level", 0.7, tank="north")`.

    A name has lower-case letters, digits and single `_`, and at most 64 characters, that of a label at most 32. There
    are at most 4 labels with values of at most 128 bytes, and 100 series for one plugin.
    """
    await wit.set_gauge(name, _labels(labels), float(value))


@_also_by_name
@_answers
async def add_to_counter(name: str, increment: int = 1, /, **labels: str) -> None:
    """Adds to a counter, which begins at 0: `add_to_counter("refills_total", tank="north")`. By convention the name of a
    counter ends in `_total`. For a label that is called `increment`, give the increment before it."""
    await wit.add_to_counter(name, _labels(labels), whole_number(increment))


def _labels(labels: dict[str, str]) -> list[wit.Label]:
    return [wit.Label(name, str(value)) for name, value in labels.items()]
