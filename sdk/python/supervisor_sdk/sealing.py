"""Prepares the interpreter for the calls that a plugin serves, after the build has imported the plugin.

The component is a snapshot of the interpreter after the import. From then on there is no standard output, and there are
none of the files of the build, so a module that was not imported by then cannot be imported.
"""

import sys

from . import log, randomness, time_outs

is_serving = False
"""Whether a call has begun: the build imports the plugin before."""


class _NoFiles:
    """Refuses imports, which would otherwise end the call with a trap that does not name the cause."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        raise ImportError(f"`{name}` is imported while a request is served: import it at the top of the plugin", name=name)


class _Lines:
    """A text file whose lines go to the log."""

    def __init__(self, write):
        self._write = write
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._write(line)
        return len(text)

    def flush(self) -> None:
        pass


def seal() -> None:
    """Refuses imports and random numbers that are always the same, and redirects output to the log. Called for each
    request, since each has its own instance."""
    global is_serving
    is_serving = True
    randomness.begin()
    time_outs.explain()
    sys.meta_path[:] = [_NoFiles]
    sys.stdout = _Lines(log.info)
    sys.stderr = _Lines(log.warn)
