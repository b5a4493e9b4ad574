"""The host's name. Capability `host-name`."""

from wit_world.imports import host_name as wit

from .capability import answers
from .errors import BadRequest

_answers = answers(Invalid=BadRequest)


@_answers
async def get() -> str | None:
    """Reads the name with which the host starts; `None` if `/etc/hostname` contains none."""
    return await wit.get()


@_answers
async def set(name: str) -> None:
    """Names the host, now and after a reboot."""
    await wit.set(name)
