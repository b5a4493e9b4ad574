"""Updates of an operating system that has two places to boot from: the action `os-update`, which only the device calls.

A provider is a class that `os-update` in `[provides]` of `plugin.toml` names::

    from supervisor_sdk.os_update import Provider, Status

    class Slots(Provider):
        async def status(self):
            return Status(running="2026.3.1", committed=True)

        async def stage(self, source: str, version: str): ...
        async def activate(self): ...
        async def commit(self): ...
        async def roll_back(self): ...

The device decides when each step happens, and keeps the necessary state across reboots. Each call runs in a fresh
instance of the plugin. `docs/os-update.md` describes the whole sequence. People read the message of an error that a
method raises, such as `Unavailable`, in the device's plan, events and log.
"""

from dataclasses import dataclass
from typing import Protocol

from .capability import boolean, whole_number


@dataclass
class Status:
    """The status of the operating system."""

    running: str
    """The running version: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`."""
    committed: bool
    """Whether the running version stays: `False` from its first boot until `commit`."""
    staged: str | None = None
    """The version that is completely installed in the other place, whether or not the next boot starts it."""
    installing: int | None = None
    """The progress of an installation, from 0 to 100, if one is running."""
    failure: str | None = None
    """The reason why the last installation failed."""

    def __post_init__(self):
        boolean(self.committed)
        if self.installing is not None:
            whole_number(self.installing, 8)


class Provider(Protocol):
    """What a provider does. Each method may be called more than once, and must have the same result then."""

    async def status(self) -> Status:
        """Returns the status, without changing anything."""

    async def stage(self, source: str, version: str) -> None:
        """Begins to install `version` from `source` (an `https://` address or an absolute path) into the place that is
        not running. Returns once the installation has begun: `status` reports its progress. Does nothing if it is
        already in progress, and does not change what the next boot starts."""

    async def activate(self) -> None:
        """Makes the next boot start the staged version."""

    async def commit(self) -> None:
        """Makes each later boot start the running version, and ends its trial."""

    async def roll_back(self) -> None:
        """Makes the next boot start the predecessor of the uncommitted version: before the first boot of that version
        this is the running version, after it the version that ran before."""
