"""The cloud's records of this device. Capability `cloud`; the policy names the kinds of records."""

import json
from collections.abc import Mapping
from typing import Any

from wit_world.imports import cloud as wit

from .capability import answers
from .errors import Internal

_answers = answers()


@_answers
async def records(kind: str, fields: list[str]) -> list[dict[str, Any]]:
    """Reads all rows of a kind from the cloud: a `dict` for each row, with these fields. Each call sends a request. The
    rows have at most 1 MiB as JSON::

        tags = await cloud.records("device_tag", ["tag_key", "value"])
    """
    rows = await wit.records(kind, fields)
    try:
        return json.loads(rows)
    except ValueError as error:
        raise Internal(f"the cloud's `{kind}` has an unexpected form: {error}") from None


@_answers
async def queue(kind: str, values: Mapping[str, str]) -> None:
    """Queues values, by name, for the cloud. They are on the disk when this returns, and are sent until the cloud
    accepts them::

        await cloud.queue("device_tag", {"site": "north"})
    """
    await wit.queue(kind, list(values.items()))
