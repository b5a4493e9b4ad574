"""GPIO lines, under the names that the policy gives them. Capability `gpio`.

The device keeps a line from its first use until the policy no longer grants it to the plugin: an output keeps its value
after the call has ended, and nobody else can use the line.
"""

from typing import NamedTuple

from wit_world.imports import gpio as wit

from .capability import answers, boolean, milliseconds
from .errors import BadGateway, Conflict

_answers = answers(NotFound=BadGateway, Busy=Conflict, Other=BadGateway)


class EdgeEvent(NamedTuple):
    """A change of an input."""

    is_rising: bool
    """Whether the line was switched on."""
    nanoseconds: int
    """The time, by a clock that only goes forward: only differences are meaningful."""
    lost: int
    """The number of edges that were lost between the last one that this call received and this one."""


@_answers
async def read(name: str) -> bool:
    """Returns whether the line is on. For an output that has not been written yet, this is its present state."""
    return await wit.read(name)


@_answers
async def write(name: str, on: bool) -> None:
    """Switches an output on or off."""
    await wit.write(name, boolean(on))


@_answers
async def wait_edge(name: str, edge: str, seconds: float) -> EdgeEvent | None:
    """Waits for an edge of an input, `rising`, `falling` or `both`; `None` once the time has passed (60 s at most). The
    second wait of a call also returns edges that occurred since the first, up to the last 64."""
    event = await wit.wait_edge(name, wit.Edge[edge.upper()], milliseconds(seconds, 32))
    return event and EdgeEvent(event.is_rising, event.nanoseconds, event.lost)
