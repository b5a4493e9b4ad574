"""The output of the host's journal command. Capability `journal`."""

from wit_world.imports import journal as wit

from .body import Body
from .capability import answers, whole_number
from .errors import BadRequest, Unavailable

_answers = answers(Invalid=BadRequest, Busy=Unavailable, Other=Unavailable)


@_answers
async def read(
    *,
    all: bool = False,
    follow: bool = False,
    unit: str | None = None,
    identifier: str | None = None,
    count: int | None = None,
    since: str | None = None,
    until: str | None = None,
    format: str | None = None,
) -> Body:
    """Starts the journal command, and returns its output. If a handler returns that as its answer, the data does not
    pass through the plugin, and the stream outlives the call.

    `all` shows fields in full, also long and unprintable ones. `follow` continues with later entries until the reader
    disconnects. `unit` and `identifier` name whose entries to show, `count` how many of the newest, `since` and `until`
    the time, and `format` the form, each as an option of `journalctl` takes it: at most 1,024 bytes, and not beginning
    with `-`. For an option that is missing, the command has its own default.
    """
    count = None if count is None else whole_number(count)
    options = wit.Options(all, follow, unit, identifier, count, since, until, format)
    return Body.of_stream(await wit.read(options))
