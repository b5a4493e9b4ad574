"""`python -m unittest discover sdk/python/tests`: the input and the answers of handlers, without a device."""

import array
import asyncio
import datetime
import enum
import inspect
import json
import pathlib
import re
import sys
import unittest
from dataclasses import dataclass, field
from typing import Any, Literal, Optional
from unittest import mock
from urllib.parse import quote, unquote

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

import wit_world  # noqa: E402
from componentize_py_types import Err  # noqa: E402
from supervisor_sdk import Body, Caller, Conflict, Error, Json, NotFound, Request, Response  # noqa: E402
from supervisor_sdk import i2c, metrics, places, sealing, store  # noqa: E402
from supervisor_sdk.capability import boolean, bytes_of, whole_number  # noqa: E402
from supervisor_sdk.handler import handler  # noqa: E402
from wit_world.imports import i2c as wit_i2c  # noqa: E402
from wit_world.imports import log  # noqa: E402
from wit_world.imports import metrics as wit_metrics  # noqa: E402
from wit_world.imports import store as wit_store  # noqa: E402
from wit_world.imports import types as wit  # noqa: E402

# The tests continue to import modules after a call.
sealing.seal = lambda: None


def call(function, **parts):
    """Returns the status and the text of an answer."""
    return asyncio.run(answer(function, **parts))


async def answer(function, *, route="/v3/x", params=(), query="", body=None, headers=()):
    request = wit.Request(
        "POST",
        route,
        route,
        list(params),
        query,
        [(name, value.encode()) for name, value in headers],
        wit.Body_Empty() if body is None else wit.Body_Bytes(body.encode()),
    )
    try:
        found = await handler({f"POST {route}": function})().handle(request)
    except Err as error:
        return error.value.status, error.value.message
    return found.status, getattr(found.body, "value", b"").decode()


class Kind(enum.Enum):
    A = "a"
    B = "b"


@dataclass
class Item:
    count: int
    kind: Kind = Kind.A


@dataclass
class Order:
    name: str
    items: list[Item]
    speed: Literal["fast", "slow"] | None = None


class Parameters(unittest.TestCase):
    def test_a_path_parameter_is_read_as_its_annotation_says(self):
        def thing(id: int, name):
            return {"id": id, "name": name}

        route = "/v3/:id/:name"
        found = call(thing, route=route, params=[("id", "7"), ("name", "é")])
        self.assertEqual(found, (200, '{"id":7,"name":"é"}'))
        for value in ["x", "1_000", " 1", "", "٣", "1.0"]:
            status, message = call(thing, route=route, params=[("id", value), ("name", "")])
            self.assertEqual(status, 400)
            self.assertEqual(message, f"path parameter `id` must be a whole number, not `{value}`")

    def test_a_query_parameter_has_its_default_or_is_missing(self):
        def rows(count: int, on: bool = False, ids: list[int] = [], ratio: float | None = None, kind: Kind = Kind.B):
            return [count, on, ids, ratio, kind.value]

        self.assertEqual(call(rows, query="count=2"), (200, '[2,false,[],null,"b"]'))
        self.assertEqual(
            call(rows, query="count=-2&on=true&ids=1&ids=2&ratio=.5&kind=a&more"), (200, '[-2,true,[1,2],0.5,"a"]')
        )
        table = {
            "": "query parameter `count` is missing",
            "count=1&count=2": "query parameter `count` is given more than once",
            "count=1&on=yes": "query parameter `on` must be `true` or `false`, not `yes`",
            "count=1&ids=1&ids=x": "query parameter `ids` must be a whole number, not `x`",
            **{
                f"count=1&ratio={text}": f"query parameter `ratio` must be a number, not `{unquote(text)}`"
                for text in ["nan", "Infinity", "1e999", "1_000", "%205", "5%0A", "%D9%A3", "", ".", "1e", "0x1", "--1"]
            },
            "count=1&kind=c": "query parameter `kind` must be one of `a`, `b`, not `c`",
        }
        for query, message in table.items():
            self.assertEqual(call(rows, query=query), (400, message))
        for text, ratio in [("-1.5e3", "-1500.0"), ("5.", "5.0"), ("1E-2", "0.01"), ("0" * 400 + "1", "1.0")]:
            self.assertEqual(call(rows, query=f"count=1&ratio={text}"), (200, f'[1,false,[],{ratio},"b"]'))
        self.assertEqual(call(rows, query="count=1&ratio=" + "1" * 100_000)[0], 400)

    def test_numbers_have_the_form_that_they_have_in_every_language(self):
        def whole(n: int):
            seen.append(n)

        def decimal(n: float):
            seen.append(n)

        texts = json.loads((HERE.parent.parent / "tests/numbers.json").read_text())
        for handler, kind, expected in [(whole, "whole", "a whole number"), (decimal, "decimal", "a number")]:
            for text, number in texts[kind]["accepted"]:
                seen = []
                self.assertEqual(call(handler, query=f"n={quote(text)}"), (200, ""), text)
                self.assertEqual(call(handler, route="/v3/:n", params=[("n", text)]), (200, ""), text)
                self.assertEqual(seen, [number, number], text)
            for text in texts[kind]["refused"]:
                message = f"parameter `n` must be {expected}, not `{text}`"
                self.assertEqual(call(handler, query=f"n={quote(text)}"), (400, f"query {message}"))
                self.assertEqual(call(handler, route="/v3/:n", params=[("n", text)]), (400, f"path {message}"))
        seen = []
        call(whole, query="n=-" + "9" * 39)
        self.assertEqual(seen, [1 - 10**39])
        message = f"query parameter `n` must be a whole number of at most 40 characters, not `{'9' * 41}`"
        self.assertEqual(call(whole, query="n=" + "9" * 41), (400, message))

    def test_a_number_that_is_not_finite_is_refused_and_its_field_is_named(self):
        @dataclass
        class Rail:
            volts: float
            limits: list[float]

        def rail(rail: Rail):
            return [rail.volts, *rail.limits]

        def any(value: Json):
            return value

        digits = "1" * 400
        literals = ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "0.1e000999"]
        for text in [*literals, f"{digits}.0", f"{digits}e0", f"{'1' * 250}e99"]:
            table = {
                f'{{"volts":{text},"limits":[]}}': " in field `volts`",
                f'{{"volts":1,"limits":[0.5, {text}]}}': " in field `limits[1]`",
                f'{{"volts":1,"limits":[],"more":{{"a":[{text}]}}}}': " in field `more.a[0]`",
                text: "",
            }
            for body, place in table.items():
                message = f"the body has the number `{text[:64]}`{place}, which is not finite"
                for function in [rail, any]:
                    self.assertEqual(call(function, body=body), (400, message))
        # Of two fields with one name, the last one counts.
        message = "the body has the number `NaN`, which is not finite"
        self.assertEqual(call(any, body='{"a":NaN,"a":1}'), (400, message))
        message = f"field `volts` of the body must be from -1.8e308 to 1.8e308, not `{'1' * 64}...`"
        self.assertEqual(call(rail, body=f'{{"volts":{digits},"limits":[]}}'), (400, message))
        body = '{"volts":1e308,"limits":[-1.7E+308,1e-999,5]}'
        self.assertEqual(call(rail, body=body), (200, "[1e+308,-1.7e+308,0.0,5.0]"))
        self.assertEqual(call(any, body=f'["NaN", "1e999", {digits}]'), (200, f'["NaN","1e999",{digits}]'))

    def test_a_json_body_becomes_a_dataclass_and_a_misfit_names_its_field(self):
        def order(order: Order):
            return {"name": order.name, "kinds": [item.kind.value for item in order.items], "speed": order.speed}

        body = '\ufeff{"name":"x","items":[{"count":1},{"count":2,"kind":"b"}],"speed":"fast"}'
        self.assertEqual(call(order, body=body), (200, '{"name":"x","kinds":["a","b"],"speed":"fast"}'))
        table = {
            '{"items":[]}': "field `name` of the body is missing",
            '{"name":5,"items":[]}': "field `name` of the body must be text, not `5`",
            '{"name":"x","items":[{"count":true}]}': "field `items[0].count` of the body must be a whole number, not `True`",
            '{"name":"x","items":[{"count":1,"kind":"c"}]}': "field `items[0].kind` of the body must be one of `a`, `b`, not `c`",
            "[]": "the body must be an object, not `[]`",
        }
        for body, message in table.items():
            self.assertEqual(call(order, body=body), (400, message))

    def test_a_body_that_is_not_json_is_refused(self):
        def any(value: Json):
            return value

        self.assertEqual(call(any, body="[1]"), (200, "[1]"))
        self.assertEqual(call(any), (400, "the body is missing: it must be JSON"))
        self.assertEqual(call(any, body="[1")[0], 400)
        self.assertEqual(call(any, body="[" * 100_000), (400, "the body is nested more than 128 deep"))
        self.assertEqual(call(any, body=r'"\ud800"')[0], 400)
        self.assertEqual(call(any, body="[1]", headers=[("content-type", "text/plain")])[0], 415)
        self.assertEqual(call(any, body="[1]", headers=[("content-type", "application/a+json; charset=utf-8")])[0], 200)
        self.assertEqual(call(any, body="[1]", headers=[("content-encoding", "gzip")])[0], 415)

    def test_a_missing_body_is_the_parameters_default(self):
        def order(order: Order | None = None):
            return order and order.name

        def rails(names: dict = {"5v": 5}):
            return names

        def any(value: Json = 7):
            return value

        def json_or_none(value: Json | None = None):
            return [value]

        for function, default in [(order, ""), (rails, '{"5v":5}'), (any, "7"), (json_or_none, "[null]")]:
            self.assertEqual(call(function), (200, default))
        self.assertEqual(call(order, body='{"name":"x","items":[]}'), (200, "x"))
        self.assertEqual(call(order, body="null"), (200, ""))
        self.assertEqual(call(order, body="{}"), (400, "field `name` of the body is missing"))
        self.assertEqual(call(json_or_none, body="[1]"), (200, "[[1]]"))

        def needed(order: Order | None): ...

        self.assertEqual(call(needed), (400, "the body is missing: it must be JSON"))

    def test_a_field_that_a_dataclass_sets_itself_is_not_read(self):
        @dataclass
        class Rail:
            name: str
            since: datetime.date = field(init=False, default=datetime.date(2024, 5, 6))

        def rail(rail: Rail):
            return f"{rail.name} {rail.since}"

        for body in ['{"name":"5v"}', '{"name":"5v","since":"2025-01-01"}']:
            self.assertEqual(call(rail, body=body), (200, "5v 2024-05-06"))

    def test_the_request_and_the_caller_are_given_as_they_are(self):
        def seen(request: Request, caller: Caller):
            return [request.method, request.headers.get("X-A"), caller.app_id, caller.covers(7), caller.covers(8)]

        self.assertEqual(call(seen, headers=[("x-a", "1")]), (200, '["POST","1",7,true,false]'))

    def test_a_handler_that_cannot_serve_its_route_is_refused_at_the_build(self):
        def twice(a: dict, b: dict): ...
        def all(**values): ...

        for function in [twice, all]:
            with self.assertRaises(TypeError):
                handler({"GET /v3/x": function})

    def test_a_parameter_of_a_type_that_cannot_be_read_is_refused_at_the_build(self):
        @dataclass
        class Rail:
            since: datetime.date

        @dataclass
        class Rails:
            rails: dict[str, list[Rail | None]]

        @dataclass
        class Union:
            volts: int | str | None = None

        leaves = "`str`, `int`, `float`, `bool`, a `Literal` or an `Enum`"
        query = f"only {leaves}, or a list of them; the body is a dataclass, a `dict`, `Json` or a `Body`"
        path = f"only {leaves}"
        body = "only `str`, `int`, `float`, `bool`, a `Literal`, an `Enum`, a dataclass, a `list`, a `dict`, `Any` or `Json`"

        def of(annotation, name="a", default=None):
            def act(**_): ...

            parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            act.__signature__ = inspect.Signature([parameter])
            act.__annotations__ = {name: annotation}
            return act

        shown = "test_handlers.Parameters.test_a_parameter_of_a_type_that_cannot_be_read_is_refused_at_the_build.<locals>"
        table = [
            (datetime.date, "a query parameter cannot be of the type `datetime.date`, " + query),
            (Optional[bytes], "a query parameter cannot be of the type `Optional[bytes]`, " + query),
            (int | str, "a query parameter cannot be of the type `int | str`, " + query),
            (list[Rail], f"a query parameter cannot be of the type `list[{shown}.Rail]`, " + query),
            (list[list[int]], "a query parameter cannot be of the type `list[list[int]]`, " + query),
            (Request | None, "a query parameter cannot be of the type `supervisor_sdk.request.Request | None`, " + query),
            (Rail, "field `since` of the body cannot be of the type `datetime.date`, " + body),
            (Rails, "field `rails.*[].since` of the body cannot be of the type `datetime.date`, " + body),
            (Union, "field `volts` of the body cannot be of the type `int | str | None`, " + body),
            (dict[str, set], "field `*` of the body cannot be of the type `set`, " + body),
        ]
        for annotation, message in table:
            with self.assertRaises(TypeError) as raised:
                handler({"GET /v3/x": of(annotation)})
            self.assertEqual(str(raised.exception), f"parameter `a` of `act`: {message}")
        for annotation, name in [(datetime.date, "datetime.date"), (list[int], "list[int]"), (dict, "dict")]:
            with self.assertRaises(TypeError) as raised:
                handler({"GET /v3/:a": of(annotation)})
            message = f"a path parameter cannot be of the type `{name}`, {path}"
            self.assertEqual(str(raised.exception), f"parameter `a` of `act`: {message}")

        @dataclass
        class Tree:
            kind: Kind
            of_either: dict[str, "list[Tree] | None"]
            anything: Any = None
            more: Json | None = None

        # `get_type_hints` finds the class there.
        with mock.patch.dict(globals(), {"Tree": Tree}):
            for annotation in [str, Any, Optional[int], list, list[float | None], Optional[list[Kind]], Tree, dict, Json]:
                handler({"GET /v3/x": of(annotation)})
            for annotation in [str, Any, float | None, Kind, Literal[1, 2]]:
                handler({"GET /v3/:a": of(annotation)})

            def depth(tree: Tree):
                return list(tree.of_either["x"][0].of_either)

            tree = '{"kind":"a","of_either":{"x":[{"kind":"b","of_either":{"y":null}}]}}'
            self.assertEqual(call(depth, body=tree), (200, '["y"]'))


class Answers(unittest.TestCase):
    def test_what_is_returned_is_the_answer(self):
        table = [
            (None, (200, "")),
            ("é", (200, "é")),
            (b"x", (200, "x")),
            ([1], (200, "[1]")),
            (Item(1, "a"), (200, '{"count":1,"kind":"a"}')),
            (Response({"id": 7}, status=201), (201, '{"id":7}')),
        ]
        for value, expected in table:
            self.assertEqual(call(lambda: value), expected)
        self.assertEqual(call(lambda: {1: object()})[0], 500)

    def test_an_error_is_answered_and_a_bug_is_logged_and_ends_the_call(self):
        async def missing():
            raise NotFound("there is no rail `x`")

        self.assertEqual(call(missing), (404, "there is no rail `x`"))

        def half():
            raise NotFound("there is no rail `\ud800`")

        self.assertEqual(call(half), (404, "there is no rail `\ufffd`"))
        self.assertEqual(Conflict("x", code="busy").code, "busy")
        log.lines.clear()
        with self.assertRaises(KeyError):
            call(lambda: {}["x"])
        self.assertIn("KeyError: 'x'\n    at <lambda> (", log.lines[0][1])

    def test_a_plugin_that_ends_itself_says_so(self):
        for code, status in [(3, "3"), (None, "0"), ("no board", "1 (no board)")]:
            log.lines.clear()
            with self.assertRaises(SystemExit):
                call(lambda code=code: sys.exit(code))
            expected = f"the plugin ended itself with status {status}; return an error instead\n    at <lambda> ("
            self.assertIn(expected, log.lines[0][1])


class Streams(unittest.TestCase):
    """Replaces the task in which a stream is written: it runs when the test reads the stream."""

    def read(self, generator, reads=99, begun=lambda: None):
        """Returns the pieces of a stream of which the caller reads so many, and the error that ended the call. `begun` is
        called when the status is sent."""
        pieces, tasks = [], []

        class Writer:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            async def write_all(self, piece):
                if len(pieces) == reads:
                    return 0
                pieces.append(piece)
                return len(piece)

        async def read():
            self.assertEqual((await answer(generator))[0], 200)
            begun()
            await tasks[0]

        with (
            mock.patch.object(wit_world, "byte_stream", lambda: (Writer(), b""), create=True),
            mock.patch("componentize_py_async_support.spawn", tasks.append),
        ):
            try:
                asyncio.run(read())
            except Exception as error:
                return pieces, error
        return pieces, None

    def test_an_error_before_the_first_piece_is_an_answer(self):
        async def asynchronous():
            await asyncio.sleep(0)
            raise NotFound("there is no rail `x`")
            yield "a"

        def synchronous():
            raise NotFound("there is no rail `x`")
            yield "a"

        for generator in [asynchronous, synchronous, lambda: Response(asynchronous(), status=201)]:
            self.assertEqual(call(generator), (404, "there is no rail `x`"))

        async def bug():
            yield {}["x"]

        log.lines.clear()
        with self.assertRaises(KeyError):
            call(bug)
        self.assertIn("KeyError: 'x'\n    at bug (", log.lines[0][1])

    def test_the_status_is_sent_with_the_first_piece(self):
        places = []

        async def pieces():
            places.append("first")
            yield "a"
            await asyncio.sleep(0)
            places.append("second")
            yield ""
            yield "b"

        found = self.read(pieces, begun=lambda: places.append("status"))
        self.assertEqual(found, ([b"a", b"", b"b"], None))
        self.assertEqual(places, ["first", "status", "second"])

    def test_a_generator_without_pieces_is_an_empty_answer(self):
        async def asynchronous():
            return
            yield

        for generator in [asynchronous, lambda: iter([])]:
            self.assertEqual(self.read(generator), ([], None))

    def test_a_generator_is_closed_when_the_caller_leaves_and_when_it_ends(self):
        places = []

        async def asynchronous():
            try:
                yield "a"
                yield "b"
                yield "c"
            finally:
                await asyncio.sleep(0)
                places.append("closed")

        def synchronous():
            try:
                yield from ["a", "b", "c"]
            finally:
                places.append("closed")

        class Rows:
            def __init__(self):
                self.rows = iter("abc")

            def __aiter__(self):
                return self

            async def __anext__(self):
                return next(self.rows)

            async def aclose(self):
                places.append("closed")

        for generator in [asynchronous, synchronous, Rows]:
            # A reference that outlives the call.
            content = generator()
            self.assertEqual(self.read(lambda: content, reads=1), ([b"a"], None))
            self.assertEqual(places, ["closed"], generator)
            places.clear()
        self.assertEqual(self.read(asynchronous), ([b"a", b"b", b"c"], None))
        self.assertEqual(places, ["closed"])

    def test_an_error_after_the_first_piece_is_logged_and_ends_the_call(self):
        async def asynchronous():
            yield "a"
            raise NotFound("out of paper")

        def synchronous():
            yield "a"
            raise NotFound("out of paper")

        for generator in [asynchronous, synchronous]:
            log.lines.clear()
            pieces, error = self.read(generator)
            self.assertEqual(pieces, [b"a"])
            self.assertIsInstance(error, NotFound)
            self.assertIn(f"NotFound: out of paper\n    at {generator.__name__} (", log.lines[0][1])

    def test_a_piece_that_is_neither_text_nor_bytes_is_an_error(self):
        @dataclass
        class Rows:
            value: Any

            def __iter__(self):
                return self

            def __next__(self):
                return self.value

        pieces = ["é", b"a", bytearray(b"b"), memoryview(b"c"), array.array("B", b"d"), ""]
        self.assertEqual(self.read(lambda: iter(pieces)), (["é".encode(), b"a", b"b", b"c", b"d", b""], None))

        for value in [5, True, 1.5, None, [1, 2], {1: 2}, (1,)]:
            kind = type(value).__name__

            async def asynchronous():
                yield value

            def synchronous():
                yield value

            async def late():
                yield "a"
                yield value

            async def caught():
                try:
                    yield value
                finally:
                    closed.append(kind)

            table = {"asynchronous": asynchronous, "synchronous": synchronous, "Rows": lambda: Rows(value)}
            for name, generator in table.items():
                message = (
                    f"failed to write the answer: `{name}` yields a value of the type `{kind}`, but a piece must be text or"
                    " bytes; `json.dumps` writes other values as text"
                )
                self.assertEqual(call(generator), (500, message))
            closed = []
            call(caught)
            self.assertEqual(closed, [kind])
            log.lines.clear()
            sent, error = self.read(late)
            self.assertEqual((sent, type(error).__name__), ([b"a"], "Internal"))
            self.assertIn(f"`late` yields a value of the type `{kind}`", log.lines[0][1])

    def test_the_place_of_an_error_is_that_in_the_authors_sources(self):
        code = compile("def bug():\n    raise KeyError('x')\n", "/1/own/plugin.py", "exec")
        found = {}
        exec(code, found)
        with mock.patch.object(places, "sources", "src"), self.assertRaises(KeyError):
            call(found["bug"])
        self.assertIn("\n    at bug (src/own/plugin.py:2)", log.lines[-1][1])
        self.assertEqual(places.shown("/1/plugin.py"), "plugin.py")
        self.assertEqual(places.shown("/2/supervisor_sdk/body.py"), "supervisor_sdk/body.py")

    def test_a_stream_that_is_complete_logs_nothing(self):
        log.lines.clear()
        self.assertEqual(self.read(lambda: iter(["a", b"b"])), ([b"a", b"b"], None))
        self.assertEqual(log.lines, [])


class Arguments(unittest.TestCase):
    def test_what_the_interface_does_not_take_is_refused_by_the_sdk(self):
        for value in [-1, 256, 1.0, "7", None]:
            with self.assertRaisesRegex(ValueError, "is not a whole number from 0 to 255"):
                whole_number(value, 8)
        for value in ["off", 0, 1, None]:
            with self.assertRaisesRegex(TypeError, "is neither True nor False"):
                boolean(value)
        with self.assertRaises(ValueError):
            Response("", status=70_000)

        def fails():
            raise Error("no answer has such a status", status=70_000)

        with self.assertRaisesRegex(ValueError, "70000 is not a whole number from 0 to 65535"):
            call(fails)
        self.assertIn("ValueError: 70000 is not", log.lines[-1][1])
        self.assertEqual((whole_number(255, 8), boolean(False)), (255, False))

    def test_a_number_is_not_so_many_zeros(self):
        for value in ["a", b"a", bytearray(b"a"), memoryview(b"a")]:
            self.assertEqual(bytes_of(value), b"a")
            self.assertIs(type(bytes_of(value)), bytes)
        wit_store.values.clear()
        wit_i2c.written.clear()
        for value, shown in [(5, "5"), (True, "True"), (0.5, "0.5"), ({"a": 1}, "{'a': 1}"), (None, "None")]:
            message = f"^{re.escape(shown)}.* is neither text nor bytes$"
            changes = [store.set("k", value), store.set_for("k", value, 1)]
            if value is not None:
                changes += [store.compare_and_set("k", value, "a"), store.compare_and_set("k", None, value)]
                changes += [store.update("k", lambda _: value)]
            for change in [*changes, i2c.write_read("sensor", value, 2)]:
                with self.assertRaisesRegex(TypeError, message):
                    asyncio.run(change)
            with self.assertRaisesRegex(TypeError, message):
                Body(value)
        self.assertEqual((wit_store.values, wit_i2c.written), ({}, []))
        asyncio.run(store.set("k", bytearray(b"a")))
        for data in [b"\x05", [5], (5,), bytearray([5])]:
            self.assertEqual(asyncio.run(i2c.write_read("sensor", data, 2)), b"\0\0")
        self.assertEqual((wit_store.values, wit_i2c.written), ({"k": b"a"}, [b"\x05"] * 4))


class Store(unittest.TestCase):
    def test_an_update_that_another_call_overtakes_is_done_again(self):
        wit_store.values.clear()
        wit_store.interferences[:] = [b"5"]
        found = asyncio.run(store.update("count", lambda count: str(int(count or 0) + 1)))
        self.assertEqual((found, wit_store.values), (b"6", {"count": b"6"}))


class Metrics(unittest.TestCase):
    def test_a_label_may_have_the_name_of_a_parameter(self):
        table = [
            (metrics.set_gauge("level", 0.5, tank=1), ("level", {"tank": "1"}, 0.5)),
            (metrics.set_gauge("level", 1, name="a", value="b"), ("level", {"name": "a", "value": "b"}, 1.0)),
            (metrics.add_to_counter("refills"), ("refills", {}, 1)),
            (metrics.add_to_counter("refills", 3, increment="a"), ("refills", {"increment": "a"}, 3)),
            (metrics.add_to_counter("refills", name="a", value="b"), ("refills", {"name": "a", "value": "b"}, 1)),
            # As before labels could have these names.
            (metrics.set_gauge("level", value=2, tank="a"), ("level", {"tank": "a"}, 2.0)),
            (metrics.set_gauge(tank="a", value=2, name="level"), ("level", {"tank": "a"}, 2.0)),
            (metrics.add_to_counter("refills", increment=2), ("refills", {}, 2)),
            (metrics.add_to_counter(increment=2, name="refills", tank="a"), ("refills", {"tank": "a"}, 2)),
        ]
        for call, expected in table:
            wit_metrics.calls.clear()
            asyncio.run(call)
            self.assertEqual(wit_metrics.calls, [expected])
        for call in [lambda: metrics.set_gauge("level"), lambda: metrics.set_gauge(value=1), metrics.add_to_counter]:
            with self.assertRaises(TypeError):
                asyncio.run(call())
        with self.assertRaises(ValueError):
            asyncio.run(metrics.add_to_counter("refills", increment="a"))


if __name__ == "__main__":
    unittest.main()
