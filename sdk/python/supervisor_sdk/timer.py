"""Waiting. Needs no capability."""

from wit_world.imports import timer as wit


async def sleep(seconds: float) -> None:
    """Returns after so many seconds, of which milliseconds count and at most 49 days. Time spent here counts towards
    the plugin's wall-time limit and not towards its CPU limit. (`asyncio.sleep` has no clock here and fails.)"""
    await wit.sleep(min(max(round(seconds * 1000), 0), 0xFFFF_FFFF))
