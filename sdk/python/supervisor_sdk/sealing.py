"""What changes between the build, in which a plugin is imported, and the calls that it serves.

The component is a snapshot of the interpreter after the import. From then on there are no files, so a module that
nobody has imported cannot be imported, and no standard output.
"""

import sys

from . import log


class _NoFiles:
    """Refuses imports, which would otherwise end the call with a trap that says nothing."""

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
    """Is called before each request; each has an instance of its own."""
    sys.meta_path[:] = [_NoFiles]
    sys.stdout = _Lines(log.info)
    sys.stderr = _Lines(log.warn)
