"""Reads a handler's parameters from a request, by their names and annotations, and those of an action from its input.

Whatever can be checked before the first request is checked while the plugin is built, so a handler that does not fit
its route makes the build fail.
"""

import dataclasses
import enum
import inspect
import math
import re
import types
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Union

from . import json_text
from .body import Body
from .caller import Caller
from .errors import BadRequest
from .request import Headers, MissingBody, Request

SHOWN = 64
"""The number of characters of a refused value that an error shows."""

_LONGEST_WHOLE = 40
"""The number of characters of the longest whole number in a text: the time to read one grows with the square of its length."""

_OF_TEXT = "`str`, `int`, `float`, `bool`, a `Literal` or an `Enum`"
_OF_JSON = "`str`, `int`, `float`, `bool`, a `Literal`, an `Enum`, a dataclass, a `list`, a `dict`, `Any` or `Json`"
# The forms of numbers in texts, which docs/plugins.md describes for all languages. Python also reads `+5`, `1_000` and spaces.
_WHOLE = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Json:
    """The annotation of a parameter that receives a JSON body of any form."""


class Misfit(Exception):
    """A value that does not have the type of its parameter. `at` is the place in a JSON value."""

    def __init__(self, text: str, at: str = ""):
        super().__init__(text)
        self.at = at


Taker = Callable[[Request], Awaitable[Any]]


def takers(function: Callable, route: str) -> dict[str, Taker]:
    """Returns, for each parameter of a handler, the function that reads it from a request on `route`. Raises a
    `TypeError` that says what is wrong with the handler."""
    in_path = {part[1:] for part in route.split("/") if part.startswith(":")}
    signature = inspect.signature(function)
    annotations = typing.get_type_hints(function)
    found = {}
    of_body = None
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter `{name}` of `{function.__name__}`: a handler's parameters are given by name")
        annotation = annotations.get(name, str)
        try:
            found[name] = taker = _taker(name, annotation, parameter.default, in_path)
        except TypeError as error:
            raise TypeError(f"parameter `{name}` of `{function.__name__}`: {error}") from None
        if taker.takes_body:
            if of_body is not None:
                raise TypeError(f"`{function.__name__}` takes the body twice: as `{of_body}` and as `{name}`")
            of_body = name
    return {name: taker.take for name, taker in found.items()}


InputTaker = Callable[[bytes], Any]


def action_takers(function: Callable) -> dict[str, InputTaker]:
    """Returns, for each parameter of a function that performs an action, the function that reads it from the action's
    input. Raises a `TypeError` that says what is wrong with the function."""
    name = function.__name__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"`{name}` yields, but the output of an action is returned as a whole")
    annotations = typing.get_type_hints(function)
    found = {}
    of_input = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter `{parameter.name}` of `{name}`: the parameters of an action are given by name")
        annotation = annotations.get(parameter.name, Json)
        if annotation is Caller:
            found[parameter.name] = lambda _: Caller.current()
            continue
        if of_input is not None:
            raise TypeError(f"`{name}` takes the input twice: as `{of_input}` and as `{parameter.name}`")
        of_input = parameter.name
        try:
            found[parameter.name] = _of_input(annotation, parameter.default)
        except TypeError as error:
            raise TypeError(f"parameter `{parameter.name}` of `{name}`: {error}") from None
    return found


def _of_input(annotation: Any, default: Any) -> InputTaker:
    if annotation is bytes:
        return lambda content: content
    _check_json(annotation, "the input")

    def take(content: bytes) -> Any:
        if not content:
            if default is not inspect.Parameter.empty:
                return default
            raise BadRequest("the input is missing: it must be JSON")
        try:
            value = json_text.parse(content)
        except ValueError as error:
            raise BadRequest(f"the input {error}") from None
        try:
            return from_json(value, annotation)
        except Misfit as misfit:
            place = f"field `{misfit.at}` of the input" if misfit.at else "the input"
            raise BadRequest(f"{place} {misfit}") from None

    return take


@dataclasses.dataclass
class _Taking:
    take: Taker
    takes_body: bool = False


def _taker(name: str, annotation: Any, default: Any, in_path: set[str]) -> _Taking:
    if annotation is Request:
        return _Taking(_whole, True)
    if annotation is Body:
        return _Taking(_body, True)
    if annotation is Headers:
        return _Taking(_headers)
    if annotation is Caller:
        return _Taking(_caller)
    if name in in_path:
        return _Taking(_of_path(name, annotation))
    if _is_structure(annotation):
        return _Taking(_of_json(annotation, default), True)
    return _Taking(_of_query(name, annotation, default))


async def _whole(request: Request) -> Request:
    return request


async def _body(request: Request) -> Body:
    return request.body


async def _headers(request: Request) -> Headers:
    return request.headers


async def _caller(_: Request) -> Caller:
    return Caller.current()


def _of_path(name: str, annotation: Any) -> Taker:
    _, kind = _without_none(annotation)
    if not _is_of_text(kind):
        raise TypeError(f"a path parameter cannot be of the type `{inspect.formatannotation(annotation)}`, only {_OF_TEXT}")

    async def take(request: Request) -> Any:
        try:
            return from_text(request.params[name], annotation)
        except Misfit as misfit:
            raise BadRequest(f"path parameter `{name}` {misfit}") from None

    return take


def _of_query(name: str, annotation: Any, default: Any) -> Taker:
    optional, inner = _without_none(annotation)
    is_list = inner is list or typing.get_origin(inner) is list
    item = (typing.get_args(inner) or (str,))[0] if is_list else inner
    _, kind = _without_none(item)
    if not _is_of_text(kind):
        raise TypeError(
            f"a query parameter cannot be of the type `{inspect.formatannotation(annotation)}`, only {_OF_TEXT}, or a list of them;"
            " the body is a dataclass, a `dict`, `Json` or a `Body`"
        )

    async def take(request: Request) -> Any:
        values = request.query.get(name)
        if values is None:
            if default is not inspect.Parameter.empty:
                return default
            if is_list:
                return []
            if optional:
                return None
            raise BadRequest(f"query parameter `{name}` is missing")
        try:
            if is_list:
                return [from_text(value, item) for value in values]
            if len(values) > 1:
                raise Misfit("is given more than once")
            return from_text(values[0], item)
        except Misfit as misfit:
            raise BadRequest(f"query parameter `{name}` {misfit}") from None

    return take


def _of_json(annotation: Any, default: Any) -> Taker:
    _check_json(annotation, "the body")

    async def take(request: Request) -> Any:
        try:
            value = await request.json()
        except MissingBody:
            if default is inspect.Parameter.empty:
                raise
            return default
        try:
            return from_json(value, annotation)
        except Misfit as misfit:
            place = f"field `{misfit.at}` of the body" if misfit.at else "the body"
            raise BadRequest(f"{place} {misfit}") from None

    return take


def from_text(text: str, annotation: Any) -> Any:
    """Parses the text of a path or a query as the type `annotation`. Raises a `Misfit` if it does not fit."""
    _, kind = _without_none(annotation)
    if kind in (str, Any):
        return text
    if kind is int:
        if not _WHOLE.fullmatch(text):
            raise Misfit(f"must be a whole number, not `{_shown(text)}`")
        if len(text) > _LONGEST_WHOLE:
            raise Misfit(f"must be a whole number of at most {_LONGEST_WHOLE} characters, not `{_shown(text)}`")
        return int(text)
    if kind is float:
        # `1e999` would be infinite.
        if _DECIMAL.fullmatch(text) and math.isfinite(number := float(text)):
            return number
        raise Misfit(f"must be a number, not `{_shown(text)}`")
    if kind is bool:
        if text in ("true", "false"):
            return text == "true"
        raise Misfit(f"must be `true` or `false`, not `{_shown(text)}`")
    return _of_choice(text, kind)


def from_json(value: Any, annotation: Any, at: str = "") -> Any:
    """Checks a value of a JSON body against `annotation`, and creates the dataclasses in it. Raises a `Misfit` with the
    place of a value that does not fit."""
    optional, kind = _without_none(annotation)
    if kind is Any or kind is Json:
        return value
    if value is None and optional:
        return None
    if dataclasses.is_dataclass(kind):
        return _record(value, kind, at)
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is list:
        _expect(isinstance(value, list), "a list", value, at)
        item = (arguments or (Any,))[0]
        return [from_json(entry, item, f"{at}[{index}]") for index, entry in enumerate(value)]
    if origin is dict:
        _expect(isinstance(value, dict), "an object", value, at)
        item = (arguments or (str, Any))[1]
        return {name: from_json(entry, item, _below(at, name)) for name, entry in value.items()}
    if kind is bool:
        _expect(isinstance(value, bool), "`true` or `false`", value, at)
    elif kind is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), "a whole number", value, at)
    elif kind is float:
        _expect(isinstance(value, int | float) and not isinstance(value, bool), "a number", value, at)
        try:
            return float(value)
        except OverflowError:
            raise Misfit(f"must be from -1.8e308 to 1.8e308, not `{_shown(value)}`", at) from None
    elif kind is str:
        _expect(isinstance(value, str), "text", value, at)
    else:
        return _of_choice(value, kind, at)
    return value


def _record(value: Any, kind: type, at: str) -> Any:
    _expect(isinstance(value, dict), "an object", value, at)
    annotations = typing.get_type_hints(kind)
    fields = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            # The dataclass sets it itself.
            continue
        place = _below(at, field.name)
        if field.name in value:
            fields[field.name] = from_json(value[field.name], annotations[field.name], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Misfit("is missing", place)
    return kind(**fields)


def _of_choice(value: Any, kind: Any, at: str = "") -> Any:
    """Returns the value of a `Literal` or an `Enum` that `value` names."""
    choices = _choices(kind)
    try:
        return choices[value if isinstance(value, str) else str(value)]
    except KeyError:
        names = ", ".join(f"`{choice}`" for choice in choices)
        raise Misfit(f"must be one of {names}, not `{_shown(value)}`", at) from None


def _choices(kind: Any) -> dict[str, Any] | None:
    """Returns the values of a `Literal` or an `Enum` by their texts; `None` for another type."""
    if typing.get_origin(kind) is Literal:
        return {str(choice): choice for choice in typing.get_args(kind)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {str(member.value): member for member in kind}
    return None


def _is_of_text(kind: Any) -> bool:
    """Returns whether `from_text` parses texts as this type."""
    return kind in (str, int, float, bool, Any) or _choices(kind) is not None


def _check_json(annotation: Any, source: str) -> None:
    """Raises a `TypeError` if `from_json` cannot create a value of this type, or of a type in it."""
    records = set()

    def check(annotation: Any, at: str) -> None:
        _, kind = _without_none(annotation)
        origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
        if dataclasses.is_dataclass(kind):
            # A record may contain records of its own type.
            if kind not in records:
                records.add(kind)
                annotations = typing.get_type_hints(kind)
                for field in dataclasses.fields(kind):
                    if field.init:
                        check(annotations[field.name], _below(at, field.name))
        elif origin is list:
            check((arguments or (Any,))[0], f"{at}[]")
        elif origin is dict:
            check((arguments or (str, Any))[1], _below(at, "*"))
        elif kind is not Json and not _is_of_text(kind):
            place = f"field `{at}` of {source}" if at else source
            raise TypeError(f"{place} cannot be of the type `{inspect.formatannotation(annotation)}`, only {_OF_JSON}")

    check(annotation, "")


def _expect(fits: bool, expected: str, value: Any, at: str) -> None:
    if not fits:
        raise Misfit(f"must be {expected}, not `{_shown(value)}`", at)


def _is_structure(annotation: Any) -> bool:
    """Returns whether a parameter of this type receives the JSON body."""
    _, kind = _without_none(annotation)
    return kind in (Json, dict) or typing.get_origin(kind) is dict or dataclasses.is_dataclass(kind)


def _without_none(annotation: Any) -> tuple[bool, Any]:
    """Returns whether `None` is one of two types, and the other type."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return False, annotation
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return (True, kinds[0]) if len(kinds) == 1 else (False, annotation)


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
