"""Calls a plugin's functions for the requests on their routes. Used only by the module `routes`, which the build writes
from `plugin.toml`."""

import inspect
from collections.abc import Callable

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types as wit

from . import log, places, sealing
from .capability import whole_number
from .errors import Error
from .parameters import Taker, takers
from .request import Request
from .response import Response


def handler(routes: dict[str, Callable]) -> type:
    """Returns the class that a component exports, for functions by `METHOD PATH`. Raises a `TypeError` if a function
    does not fit its route."""
    table = {}
    for line, function in routes.items():
        method, path = line.split(" ", 1)
        table[method, path] = (function, takers(function, path))

    class Handler(exports.Handler):
        async def handle(self, req: wit.Request) -> wit.Response:
            sealing.seal()
            function, parameters = table[req.method, req.route]
            try:
                return (await _call(function, parameters, Request(req))).into_wit(_report)
            except Error as error:
                raise Err(_answer_of(error)) from None
            except Exception as error:
                _report(error)
                raise

    return Handler


def watcher(function: Callable) -> type:
    """Returns the class that a component exports to be called for events."""
    from wit_world.exports import events as wit_events

    from .events import Postpone, Refuse, event_of

    class Events(exports.Events):
        async def handle(self, event: wit_events.Event) -> wit_events.Answer:
            sealing.seal()
            try:
                answer = function(event_of(event))
                if inspect.isawaitable(answer):
                    answer = await answer
            except Error as error:
                raise Err(error.message) from None
            except Exception as error:
                _report(error)
                raise
            if isinstance(answer, Postpone):
                return wit_events.Answer_Postpone(wit_events.Postponement(answer.reason, answer.seconds))
            if isinstance(answer, Refuse):
                return wit_events.Answer_Refuse(answer.reason)
            return wit_events.Answer_GoOn()

    return Events


def _answer_of(error: Error) -> wit.Error:
    """Returns the answer for an error. A class of the plugin's own may have a status that no answer can have."""
    try:
        return wit.Error(whole_number(error.status, 16), error.code, error.message)
    except ValueError as bug:
        _report(bug)
        raise


async def _call(function: Callable, parameters: dict[str, Taker], request: Request) -> Response:
    arguments = {name: await take(request) for name, take in parameters.items()}
    result = function(**arguments)
    if inspect.isawaitable(result):
        result = await result
    return result if isinstance(result, Response) else Response(result)


def _report(error: Exception) -> None:
    """Logs a bug of the plugin before the call fails. (The module `traceback` looks for the source files, which do
    not exist there.)"""
    lines = []
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        lines.append(f"    at {code.co_name} ({places.shown(code.co_filename)}:{at.tb_lineno})")
        at = at.tb_next
    log.error("\n".join([f"{type(error).__name__}: {error}", *reversed(lines)]))
