"""Small files of the host, written completely or not at all. Capability `files`.

    files.write("/rails/5v", "on")

`open`, `os` and `pathlib` read and write files too, in the folders that `files` in the plugin's section of the policy maps
into the plugin. A file that they write may be incomplete after a failure.
"""

import errno
import os
from collections.abc import Callable

from .capability import text
from .errors import Conflict, Error, Forbidden, Internal, NotFound, TooLarge

_MOST_BYTES = 256 << 10
"""The most bytes that are written to a file."""
_SHOWN = 200
"""The most characters of a path in a message: a path may come from a request."""
_REASONS: dict[int, tuple[type[Error], str]] = {
    errno.EISDIR: (Conflict, "it is a folder"),
    errno.ENOENT: (
        NotFound,
        "there is no such folder, or `files` in the plugin's section of the policy does not map it into the plugin",
    ),
    errno.ENOSPC: (Internal, "the disk is full"),
    errno.ENOTDIR: (Conflict, "it is below a file"),
    errno.EPERM: (
        Forbidden,
        "`files` in the plugin's section of the policy maps the folder without `write = true`, or the path leads out of it",
    ),
}


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a file completely or not at all, also if the power fails: it is written as `PATH.new` in the same folder, and
    then renamed. Does nothing if the file already has this content. Text is written as UTF-8, and the content has at most
    256 KiB. The folder must exist, and the policy must map it with `write = true`.

    Raises `Forbidden` if the policy does not permit it, `NotFound` if there is no such folder, `Conflict` if there is a
    folder of this path, and `TooLarge` if the content is too large.
    """
    path = text(os.fspath(path))
    data = text(content).encode() if isinstance(content, str) else bytes(memoryview(content))
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    if len(data) > _MOST_BYTES:
        raise TooLarge(f"failed to write `{shown}`: the content has {len(data)} bytes, and at most {_MOST_BYTES} are written")
    try:
        if not _has_content(path, data):
            _replace(path, data)
    except OSError as error:
        others = Forbidden if isinstance(error, PermissionError) else Internal
        kind, reason = _REASONS.get(error.errno, (others, error.strerror or str(error)))
        raise kind(f"failed to write `{shown}`: {reason}") from None


def _has_content(path: str, data: bytes) -> bool:
    """Returns whether a file has this content. A file that cannot be read is replaced."""
    # If it is a pipe, the device would wait for its other end.
    if not os.path.isfile(path) or os.path.getsize(path) != len(data):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False


def _replace(path: str, data: bytes) -> None:
    """After a power cut there is either the old or the new file, also on FAT. What a power cut leaves under the temporary
    name is overwritten the next time."""
    beside = f"{path}.new"
    with open(beside, "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            _attempt(lambda: os.remove(beside))
            raise
    # Makes the renaming survive a power cut.
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _attempt(action: Callable[[], None]) -> None:
    try:
        action()
    except OSError:
        # The plugin gets the first error, which says more.
        pass
