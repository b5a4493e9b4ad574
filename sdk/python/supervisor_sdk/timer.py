"""Waiting. Needs no capability."""

from wit_world.imports import timer as wit


async def sleep(seconds: float) -> None:
    """Returns after this many seconds, to the millisecond and at most 49 days. The time counts towards the plugin's
    wall-time limit, but not towards its CPU limit. (`asyncio.sleep` has no clock here and fails.)"""
    await wit.sleep(min(max(round(seconds * 1000), 0), 0xFFFF_FFFF))
