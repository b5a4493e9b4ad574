"""The plugin's own configuration: the table `[plugins.NAME]` of the supervisor's configuration file. Needs no
capability."""

import json
from typing import Any

from wit_world.imports import config as wit


def read() -> dict[str, Any]:
    """Reads the configuration: `{}` if the file has no such table."""
    return json.loads(wit.json())
