"""What the supervisor knows about its device. Capability `device`."""

import json
from typing import Any

from wit_world.imports import device as wit
from wit_world.imports.device import DeviceIdentity as Identity


def identity() -> Identity:
    """Returns the device's identity: `uuid` (32 hexadecimal digits), `name` (`local` until the device has a target),
    `device_type` (such as `raspberrypi4-64`) and `arch` (such as `aarch64`), each a `str`."""
    return wit.identity()


def state() -> dict[str, Any]:
    """Returns the device's state, as in the answer to `GET /v1/device`."""
    return json.loads(wit.state())
