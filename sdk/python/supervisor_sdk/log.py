"""The supervisor's log. Needs no capability.

Each line carries the plugin's name. A message is cut at 4 KiB; after 100 lines in one call the rest are counted and
not written.
"""

from wit_world.imports import log as wit

from . import json_text


def trace(message: object) -> None:
    """Logs the finest detail, which is usually switched off."""
    _write(wit.Level.TRACE, message)


def debug(message: object) -> None:
    """Logs detail for people who are looking for a fault."""
    _write(wit.Level.DEBUG, message)


def info(message: object) -> None:
    """Logs information for the owner of the device."""
    _write(wit.Level.INFO, message)


def warn(message: object) -> None:
    """Logs a problem in spite of which the plugin continues."""
    _write(wit.Level.WARN, message)


def error(message: object) -> None:
    """Logs a failure."""
    _write(wit.Level.ERROR, message)


def _write(level: wit.Level, message: object) -> None:
    # A text of a caller may not be one that the interface accepts.
    wit.write(level, json_text.valid(str(message)))
