"""Names source files as the author of a plugin does."""

sources = ""
"""The folder of the plugin's sources; `routes.py`, which the build writes, sets it."""


def shown(path: str) -> str:
    """Returns the author's path of a source file. The build puts the plugin's sources into `/1`, and the SDK into `/2`."""
    if path.startswith("/1/"):
        return f"{sources}/{path[3:]}".lstrip("/")
    return path.removeprefix("/2/")
