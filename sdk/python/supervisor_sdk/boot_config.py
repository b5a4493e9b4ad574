"""The boot configuration of a family of boards: the action `boot-config`, which only the device calls, for the variables
`HOST_*` of its target.

A provider is a class that `boot-config` in `[provides]` of `plugin.toml` names::

    from supervisor_sdk.boot_config import Comparison, Provider, Setting

    class Firmware(Provider):
        async def get(self):
            return [Setting("HOST_CONFIG_gpu_mem", "64")]

        async def compare(self, target: list[Setting]):
            changes = [setting.name for setting in target if setting not in await self.get()]
            return Comparison(changes, needs_reboot=True)

        async def set(self, target: list[Setting]):
            comparison = await self.compare(target)
            ...  # writes what differs
            return comparison

The device compares when its target changes and after a start. If something differs, it calls `set`, and reboots once the
update locks of all apps allow it. Each call runs in a fresh instance of the plugin. People read the message of an error
that a method raises, such as `Unavailable`.
"""

from dataclasses import dataclass, field
from typing import Protocol

from .capability import boolean, text


@dataclass
class Setting:
    """A variable of the target without the cloud's prefix."""

    name: str
    """For example `HOST_CONFIG_gpu_mem`."""
    value: str


@dataclass
class Refusal:
    """A setting that cannot be written."""

    name: str
    reason: str
    """What is wrong with it, without its name."""


@dataclass
class Comparison:
    """How the configuration differs from a target."""

    changes: list[str]
    """The names of the settings that differ: those to write, and those that were written before and are no longer in the
    target. Empty if nothing differs."""
    needs_reboot: bool
    """Whether the changes take effect only at the next boot."""
    refused: list[Refusal] = field(default_factory=list)
    """The settings that cannot be written. If there is one, nothing is written."""
    foreign: list[str] = field(default_factory=list)
    """The names of the settings that mean nothing on this board."""


class Provider(Protocol):
    """What a provider does. Each method may be called more than once, and must have the same result then."""

    async def get(self) -> list[Setting]:
        """Returns the settings of the next boot, restricted to those that apply to all boards of the kind."""

    async def compare(self, target: list[Setting]) -> Comparison:
        """Compares the configuration with these settings, without changing anything."""

    async def set(self, target: list[Setting]) -> Comparison:
        """Writes the settings that differ, all of them or none, and keeps a copy of the previous configuration. Writes
        nothing if the comparison refuses a setting. Returns the comparison from before the change."""


def _settings_of_wit(settings: list) -> list[Setting]:
    return [Setting(setting.name, setting.value) for setting in settings]


def _settings_into_wit(settings: list[Setting], wit) -> list:
    return [wit.Setting(text(setting.name), text(setting.value)) for setting in settings]


def _comparison_into_wit(comparison: Comparison, wit):
    refused = [wit.Refusal(text(refusal.name), text(refusal.reason)) for refusal in comparison.refused]
    changes, foreign = [text(name) for name in comparison.changes], [text(name) for name in comparison.foreign]
    return wit.Comparison(changes, refused, foreign, boolean(comparison.needs_reboot))
