"""The update locks of all apps. Capability `update-lock`."""

from wit_world.imports import update_lock as wit

from .capability import answers, boolean
from .errors import Locked, Unavailable

_answers = answers(Locked=Locked, Other=Unavailable)


class AllLocks:
    """The update locks of all services of all apps, or none, for as long as the `async with` block lasts::

        async with update_lock.AllLocks():
            await units.restart("openvpn.service")

    Waits up to 10 s for other operations of the supervisor, but not for apps. With `force`, locks that apps hold are
    removed; the policy has to allow that.
    """

    def __init__(self, force: bool = False):
        self._force = boolean(force)

    @_answers
    async def __aenter__(self) -> "AllLocks":
        self._lock = await wit.Lock.acquire_all(self._force)
        return self

    async def __aexit__(self, *raised) -> None:
        self._lock.__exit__(*raised)
