"""GPIO lines, under the names that the policy gives them. Capability `gpio`.

The device keeps a line from its first use until the policy no longer gives it to the plugin: an output stays as it was written
when the call has ended, and nobody else has the line.
"""

from typing import NamedTuple

from wit_world.imports import gpio as wit

from .capability import answers, boolean, milliseconds
from .errors import BadGateway, Conflict

_answers = answers(NotFound=BadGateway, Busy=Conflict, Other=BadGateway)


class EdgeEvent(NamedTuple):
    """A change of an input."""

    is_rising: bool
    """Whether the line went on."""
    nanoseconds: int
    """When, on a clock that only goes forward: only differences mean something."""
    lost: int
    """How many edges were lost before this one since the last that this call was given."""


@_answers
async def read(name: str) -> bool:
    """Whether the line is on. An output that was not written yet is read as it is."""
    return await wit.read(name)


@_answers
async def write(name: str, on: bool) -> None:
    """Switches an output on or off."""
    await wit.write(name, boolean(on))


@_answers
async def wait_edge(name: str, edge: str, seconds: float) -> EdgeEvent | None:
    """Waits for an edge of an input, `rising`, `falling` or `both`; None once the time has passed (60 s at most). Edges that
    come between two waits of one call are given to the second, the last 64 of them."""
    event = await wit.wait_edge(name, wit.Edge[edge.upper()], milliseconds(seconds, 32))
    return event and EdgeEvent(event.is_rising, event.nanoseconds, event.lost)
