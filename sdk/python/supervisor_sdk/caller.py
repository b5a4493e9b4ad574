"""The caller that the plugin is called for. Needs no capability."""

from dataclasses import dataclass
from typing import Literal

from wit_world.imports import caller as wit


@dataclass(frozen=True)
class Caller:
    """Who a call is for: a parameter of handlers.

    The host has checked the caller's key. A plugin that keeps data for each app should give the key of a service access
    only to the data of that service's app: see `covers`.
    """

    scope: Literal["device", "device-key", "local-mode", "service", "other"]
    """What the caller may see and change; grant nothing to `other`."""
    app_id: int | None = None
    """The number of the service's app, for the scope `service`."""
    service: str | None = None
    """The service's name in the app, for the scope `service`."""
    plugin: str | None = None
    """The plugin that called this action; `None` for a request."""

    @classmethod
    def current(cls) -> "Caller":
        """Returns the caller of the call that this instance serves."""
        match wit.scope():
            case wit.CallerScope_Device():
                scope = "device"
            case wit.CallerScope_DeviceKey():
                scope = "device-key"
            case wit.CallerScope_LocalMode():
                scope = "local-mode"
            case wit.CallerScope_Service(value):
                return cls("service", value.app_id, value.service, wit.plugin())
            case _:
                scope = "other"
        return cls(scope, plugin=wit.plugin())

    def covers(self, app_id: int) -> bool:
        """Returns whether the caller may see and change what belongs to the app with this number."""
        if self.scope == "service":
            return self.app_id == app_id
        return self.scope != "other"
