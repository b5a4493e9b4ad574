"""The supervisor's log. Needs no capability.

Each line carries the plugin's name. A message is cut at 4 KiB; after 100 lines in one call the rest are counted and
not written.
"""

from wit_world.imports import log as wit


def trace(message: object) -> None:
    """Logs the finest detail, which is usually switched off."""
    wit.write(wit.Level.TRACE, str(message))


def debug(message: object) -> None:
    """Logs detail for people who are looking for a fault."""
    wit.write(wit.Level.DEBUG, str(message))


def info(message: object) -> None:
    """Logs information for the owner of the device."""
    wit.write(wit.Level.INFO, str(message))


def warn(message: object) -> None:
    """Logs a problem in spite of which the plugin continues."""
    wit.write(wit.Level.WARN, str(message))


def error(message: object) -> None:
    """Logs a failure."""
    wit.write(wit.Level.ERROR, str(message))
