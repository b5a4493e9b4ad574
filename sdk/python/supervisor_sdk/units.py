"""The host's systemd units that the policy names. Capability `units`."""

from dataclasses import dataclass

from wit_world.imports import units as wit

from .capability import answers
from .errors import NotFound

_answers = answers(NotFound=NotFound)


@dataclass(frozen=True)
class State:
    """A unit's state in the service manager's own terms, such as `loaded`, `active` and `running`."""

    load: str
    """`loaded`, `not-found`, `masked` and so on."""
    active: str
    """`active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating` and so on."""
    sub: str
    """`running`, `dead`, `exited` and so on; different for each kind of unit."""


@_answers
async def state(unit: str) -> State:
    """Returns the state of a unit such as `openvpn.service`. If the host has no such unit, `load` is `not-found`."""
    found = await wit.state(unit)
    return State(found.load_state, found.active_state, found.sub_state)


@_answers
async def restart(unit: str) -> None:
    """Restarts a unit, or starts it if it is stopped. Returns before the unit is up."""
    await wit.restart(unit)
