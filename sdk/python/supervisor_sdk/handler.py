"""Calls a plugin's functions for the requests on their routes, for events and for its actions. Used only by the module
`routes`, which the build writes from `plugin.toml`."""

import inspect
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types as wit

from . import json_text, log, places, sealing
from .capability import text, whole_number
from .errors import BadRequest, Error
from .parameters import SHOWN, Taker, action_takers, takers
from .provider import check_class, check_function, check_result
from .request import Request
from .response import Response, json_of


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
                return await (await _call(function, parameters, Request(req))).into_wit(_report)
            except Error as error:
                raise Err(_answer_of(error)) from None
            except (Exception, SystemExit) as error:
                _report(error)
                raise

    return Handler


def watcher(function: Callable) -> type:
    """Returns the class that a component exports to be called for events. Raises a `TypeError` if the function yields."""
    from wit_world.exports import events as wit_events

    from .events import HealthGate, Postpone, Refuse, UpdateGate, event_of

    name = check_result(function, "events")

    async def answer_to(event: wit_events.Event) -> wit_events.Answer:
        event = event_of(event)
        answer = await _finished(function(event))
        if isinstance(answer, Postpone):
            reason = json_text.valid(answer.reason)
            return wit_events.Answer_Postpone(wit_events.Postponement(reason, answer.seconds))
        if isinstance(answer, Refuse):
            return wit_events.Answer_Refuse(json_text.valid(answer.reason))
        # `return False` would let the update go on. What is returned for other events does not matter.
        if answer is not None and isinstance(event, UpdateGate | HealthGate):
            raise TypeError(
                f"`{name}` answers `{type(event).__name__}` with `{repr(answer)[:SHOWN]}`: it must return `None`, which lets"
                " the device go on, a `Postpone`, or for `HealthGate` a `Refuse`"
            )
        return wit_events.Answer_GoOn()

    class Events(exports.Events):
        async def handle(self, event: wit_events.Event) -> wit_events.Answer:
            return await _perform(lambda: answer_to(event))

    return Events


def action_provider(actions: dict[str, Callable]) -> type:
    """Returns the class that a component exports to perform the plugin's own actions, for functions by name. Raises a
    `TypeError` if a function cannot be an action."""
    table = {name: (function, action_takers(function)) for name, function in actions.items()}

    class ActionProvider(exports.ActionProvider):
        async def call(self, name: str, input: bytes) -> bytes:
            function, parameters = table[name]

            async def output() -> bytes:
                arguments = {parameter: take(input) for parameter, take in parameters.items()}
                result = await _finished(function(**arguments))
                is_bytes = isinstance(result, bytes | bytearray | memoryview)
                return bytes(result) if is_bytes else json_of(result, "bytes")

            return await _perform(output)

    return ActionProvider


def os_updater(provider: type) -> type:
    """Returns the class that a component exports to update the operating system. Raises a `TypeError` if `provider` lacks
    a method. Each call gets an instance of its own."""
    from wit_world.exports import os_update as wit_os

    from .os_update import Provider

    check_class(provider, Provider, "os-update")

    class OsUpdate(exports.OsUpdate):
        async def status(self) -> wit_os.OsStatus:
            async def status() -> wit_os.OsStatus:
                found = await _finished(provider().status())
                return wit_os.OsStatus(found.running, found.staged, found.committed, found.installing, found.failure)

            return await _perform(status)

        async def stage(self, source: str, version: str) -> None:
            await _perform(lambda: provider().stage(source, version))

        async def activate(self) -> None:
            await _perform(lambda: provider().activate())

        async def commit(self) -> None:
            await _perform(lambda: provider().commit())

        async def roll_back(self) -> None:
            await _perform(lambda: provider().roll_back())

    return OsUpdate


def identifier(function: Callable) -> type:
    """Returns the class that a component exports to show which device this is. Raises a `TypeError` if the function takes
    arguments."""
    check_function(function, "identify")

    class Identify(exports.Identify):
        async def identify(self) -> None:
            await _perform(function)

    return Identify


def boot_configurator(provider: type) -> type:
    """Returns the class that a component exports to read and write a board's boot configuration. Raises a `TypeError` if
    `provider` lacks a method. Each call gets an instance of its own."""
    from wit_world.exports import boot_config as wit_boot

    from . import boot_config

    check_class(provider, boot_config.Provider, "boot-config")

    class BootConfig(exports.BootConfig):
        async def get(self) -> list[wit_boot.Setting]:
            async def get() -> list[wit_boot.Setting]:
                return boot_config._settings_into_wit(await _finished(provider().get()), wit_boot)

            return await _perform(get)

        async def compare(self, target: list[wit_boot.Setting]) -> wit_boot.Comparison:
            return await compared(lambda: provider().compare(boot_config._settings_of_wit(target)))

        async def set(self, target: list[wit_boot.Setting]) -> wit_boot.Comparison:
            return await compared(lambda: provider().set(boot_config._settings_of_wit(target)))

    async def compared(call: Callable[[], Any]) -> wit_boot.Comparison:
        async def comparison() -> wit_boot.Comparison:
            return boot_config._comparison_into_wit(await _finished(call()), wit_boot)

        return await _perform(comparison)

    return BootConfig


def proxy_configurator(provider: type) -> type:
    """Returns the class that a component exports to configure the program that sends connections through a proxy. Raises a
    `TypeError` if `provider` lacks a method. Each call gets an instance of its own."""
    from wit_world.imports import proxy_types as wit_proxy

    from . import proxy_redirector

    check_class(provider, proxy_redirector.Provider, "proxy-redirector")

    def error_of(error: Error) -> Any:
        # The case `Unavailable` means that there is no provider.
        case = wit_proxy.ProxyError_Invalid if isinstance(error, BadRequest) else wit_proxy.ProxyError_Other
        return case(json_text.valid(error.message))

    class ProxyRedirector(exports.ProxyRedirector):
        async def get(self) -> wit_proxy.ProxyState:
            async def get() -> wit_proxy.ProxyState:
                return proxy_redirector._state_into_wit(await _finished(provider().get()), wit_proxy)

            return await _perform(get, error_of)

        async def set(self, target: wit_proxy.Redirection | None) -> None:
            await _perform(lambda: provider().set(proxy_redirector._redirection_of_wit(target)), error_of)

        async def no_proxy(self) -> list[str]:
            async def no_proxy() -> list[str]:
                return [text(address) for address in await _finished(provider().no_proxy())]

            return await _perform(no_proxy, error_of)

        async def set_no_proxy(self, addresses: list[str]) -> None:
            await _perform(lambda: provider().set_no_proxy(addresses), error_of)

        async def apply(self) -> None:
            await _perform(lambda: provider().apply(), error_of)

    return ProxyRedirector


async def _finished(result: Any) -> Any:
    """Waits for the result of a function that may be asynchronous."""
    return await result if inspect.isawaitable(result) else result


def _message_of(error: Error) -> str:
    return json_text.valid(error.message)


async def _perform(function: Callable[[], Any], error_of: Callable[[Error], Any] = _message_of) -> Any:
    """Calls a function of the plugin for an event or an action. An error of the SDK is the answer, in the form that
    `error_of` returns; any other is a bug."""
    sealing.seal()
    try:
        return await _finished(function())
    except Error as error:
        raise Err(error_of(error)) from None
    except (Exception, SystemExit) as error:
        _report(error)
        raise


def _answer_of(error: Error) -> wit.Error:
    """Returns the answer for an error. A class of the plugin's own may have a status that no answer can have."""
    try:
        return wit.Error(whole_number(error.status, 16), error.code, json_text.valid(error.message))
    except ValueError as bug:
        _report(bug)
        raise


async def _call(function: Callable, parameters: dict[str, Taker], request: Request) -> Response:
    arguments = {name: await take(request) for name, take in parameters.items()}
    result = await _finished(function(**arguments))
    return result if isinstance(result, Response) else Response(result)


def _text_of(error: Exception | SystemExit) -> str:
    if not isinstance(error, SystemExit):
        return f"{type(error).__name__}: {error}"
    status = 0 if error.code is None else error.code
    # As Python does: any other value is a message.
    shown = status if isinstance(status, int) else f"1 ({status})"
    return f"the plugin ended itself with status {shown}; return an error instead"


def _report(error: Exception | SystemExit) -> None:
    """Logs a bug of the plugin before the call fails. (The module `traceback` looks for the source files, which do
    not exist there.)"""
    lines = []
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        lines.append(f"    at {code.co_name} ({places.shown(code.co_filename)}:{at.tb_lineno})")
        at = at.tb_next
    log.error("\n".join([_text_of(error), *reversed(lines)]))
