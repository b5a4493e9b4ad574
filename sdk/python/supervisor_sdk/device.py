"""What the supervisor knows about its device. Capability `device`."""

import json
from typing import Any

from wit_world.imports import device as wit
from wit_world.imports.device import DeviceIdentity as Identity


def identity() -> Identity:
    """Returns the device's identity: `uuid`, `name`, `device_type` and `arch`."""
    return wit.identity()


def state() -> dict[str, Any]:
    """Returns the device state, as in `GET /v1/device`."""
    return json.loads(wit.state())
