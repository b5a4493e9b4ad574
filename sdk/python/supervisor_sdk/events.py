"""Events on the device, which the plugin requests with `events` and `[schedules]` in `plugin.toml`.

The function that `events` in `[provides]` names receives an instance of one of these classes::

    from supervisor_sdk.events import Event, Postpone, UpdateGate

    async def watch(event: Event):
        match event:
            case UpdateGate(services=services) if "press" in services:
                return Postpone("the press is running", seconds=60)

Its return value matters only for `UpdateGate` and `HealthGate`: it is a `Postpone`, a `Refuse`, or `None`, which lets the
device go on. Anything else counts as a failure of the plugin.
"""

import json
from dataclasses import dataclass
from typing import Any

from .capability import whole_number


@dataclass
class Start:
    """The supervisor has started, or this version of the plugin was installed."""

    is_first_of_boot: bool


@dataclass
class Schedule:
    """A schedule is due."""

    name: str


@dataclass
class ServiceChange:
    """A change of a service's state. The words are those of `GET /v2/state/status`; `None` for a missing
    service."""

    app_id: int
    service: str
    status: str | None
    before: str | None


@dataclass
class Services:
    """The states of services have changed."""

    changes: list[ServiceChange]


@dataclass
class Target:
    """How far the device is with applying its target: `applying`, `reached` or `stopped`."""

    progress: str


@dataclass
class Connection:
    """Whether the device can reach its cloud."""

    is_connected: bool


@dataclass
class UpdateGate:
    """May this app be disturbed now?"""

    app_id: int
    app_uuid: str
    services: list[str]
    running_commit: str | None
    target_commit: str | None


@dataclass
class HealthGate:
    """Is this release, which was installed a short while ago, healthy? All of its services run, and those with a health
    check pass it."""

    app_id: int
    app_uuid: str
    services: list[str]
    commit: str


@dataclass
class Later:
    """An event that a later version of the interface defines."""

    name: str
    data: Any


Event = Start | Schedule | Services | Target | Connection | UpdateGate | HealthGate | Later


@dataclass
class Postpone:
    """Not now: the device asks again after this many seconds, 10 to 900, and shows people the reason."""

    reason: str
    seconds: int

    def __post_init__(self):
        whole_number(self.seconds, 32)


@dataclass
class Refuse:
    """The release is not healthy and will not become so: the device goes back to the last healthy one. Only an answer
    to `HealthGate`."""

    reason: str


def event_of(event: Any) -> Event:
    """Converts an event of `wit/events.wit` to the form that plugins receive."""
    name = type(event).__name__
    value = getattr(event, "value", None)
    match name:
        case "Event_Start":
            return Start(value)
        case "Event_Schedule":
            return Schedule(value)
        case "Event_Services":
            return Services([ServiceChange(one.app_id, one.service, one.status, one.before) for one in value])
        case "Event_Target":
            return Target(value.name.lower())
        case "Event_Connection":
            return Connection(value)
        case "Event_UpdateGate":
            return UpdateGate(
                value.app_id, value.app_uuid, list(value.services), value.running_commit, value.target_commit
            )
        case "Event_HealthGate":
            return HealthGate(value.app_id, value.app_uuid, list(value.services), value.commit)
        case _:
            return Later(value.name, json.loads(value.data))
