"""The supervisor's log. Needs no capability.

Each line carries the plugin's name. A message is cut at 4 KiB; after 100 lines in one call the rest are counted and
not written.
"""

from wit_world.imports import log as wit


def trace(message: object) -> None:
    """The finest detail, mostly switched off."""
    wit.write(wit.Level.TRACE, str(message))


def debug(message: object) -> None:
    """Detail for those who look for a fault."""
    wit.write(wit.Level.DEBUG, str(message))


def info(message: object) -> None:
    """What the owner of a device may want to know."""
    wit.write(wit.Level.INFO, str(message))


def warn(message: object) -> None:
    """Something is not as it should be; the plugin goes on."""
    wit.write(wit.Level.WARN, str(message))


def error(message: object) -> None:
    """Something failed."""
    wit.write(wit.Level.ERROR, str(message))
