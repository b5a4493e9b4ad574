"""Events, actions of a plugin's own, and updates of the operating system, without a device."""

import asyncio
import datetime
import json
import pathlib
import sys
import unittest
from dataclasses import dataclass

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from componentize_py_types import Err  # noqa: E402
from supervisor_sdk import Caller, Json, NotFound, Unavailable, sealing  # noqa: E402
from supervisor_sdk import log as sdk_log  # noqa: E402
from supervisor_sdk.events import HealthGate, Postpone, Refuse, Schedule, UpdateGate  # noqa: E402
from supervisor_sdk.handler import action_provider, os_updater, watcher  # noqa: E402
from supervisor_sdk.os_update import Provider, Status  # noqa: E402
from wit_world.exports import events as wit_events  # noqa: E402
from wit_world.exports.os_update import OsStatus  # noqa: E402
from wit_world.imports import log  # noqa: E402

# The tests continue to import modules after a call.
sealing.seal = lambda: None


def call(function, input=b""):
    """Returns the output of an action, or its error."""
    try:
        return asyncio.run(action_provider({"set": function})().call("set", input))
    except Err as error:
        return f"refused: {error.value}"


@dataclass
class Rail:
    name: str
    on: bool = True


class Actions(unittest.TestCase):
    def test_the_input_is_read_as_the_annotation_says(self):
        def of(annotation):
            def act(input):
                return [input.name, input.on] if isinstance(input, Rail) else input

            act.__annotations__ = {"input": annotation}
            return act

        table = [
            (of(bytes), b"\xff", b"\xff"),
            (of(bytes), b"", b""),
            (of(dict), b'{"a":[1]}', b'{"a":[1]}'),
            (of(Json), b"null", b"null"),
            (of(str), '"é"'.encode(), '"é"'.encode()),
            (of(list[int]), b"[1,2]", b"[1,2]"),
            (of(Rail), b'{"name":"5v","more":1}', b'["5v",true]'),
            (lambda input: input, b"[1]", b"[1]"),
            (lambda input="all": input, b"", b'"all"'),
            (lambda: 7, b"anything", b"7"),
        ]
        for function, input, expected in table:
            self.assertEqual(call(function, input), expected)

    def test_an_input_that_does_not_fit_is_refused_by_its_place(self):
        def act(rail: Rail):
            raise AssertionError("it does not run")

        table = {
            b"": "the input is missing: it must be JSON",
            b"[]": "the input must be an object, not `[]`",
            b'{"on":false}': "field `name` of the input is missing",
            b'{"name":"5v","on":"off"}': "field `on` of the input must be `true` or `false`, not `off`",
        }
        for input, message in table.items():
            self.assertEqual(call(act, input), f"refused: {message}")
        for input in [b"{", b"\xff", b"1" * 100_000]:
            message = call(act, input)
            self.assertTrue(message.startswith("refused: the input is not JSON: "), message)
            self.assertLess(len(message), 300)

    def test_an_input_that_the_interpreters_parser_cannot_take_is_refused(self):
        def act(input):
            return input

        def lists(depth):
            return b"[" * depth + b"]" * depth

        def objects(depth):
            return b'{"]":' * depth + b"0" + b"}" * depth

        deep = "refused: the input is nested more than 128 deep"
        for nested in [lists, objects]:
            self.assertEqual(call(act, nested(128)), nested(128))
            self.assertEqual(call(act, nested(129)), deep)
        # Brackets in texts, behind escapes and beside each other are no levels.
        for value in ["[" * 999 + '\\"' + "{" * 999, "\\" + "[" * 999, [[{}]] * 999]:
            text = json.dumps(value, separators=(",", ":")).encode()
            self.assertEqual(call(act, text), text)
        for input in [b"[" * (1 << 19), b'{"a":' * 100_000, b'["' + b"\\" * (1 << 18) + b'", ' + b"[" * 999]:
            self.assertEqual(call(act, input), deep)

    def test_half_of_a_surrogate_pair_in_an_input_is_refused_and_in_an_error_it_is_replaced(self):
        def act(input):
            return input

        for input in [rb'"\ud800"', rb'{"\uDC00":1}', rb'[["a\ud83d"]]']:
            expected = "refused: the input contains half of a surrogate pair, which is not text"
            self.assertEqual(call(act, input), expected)
        self.assertEqual(call(act, rb'"\ud83d\ude00"'), '"😀"'.encode())
        self.assertEqual(call(act, rb'"\\ud800"'), rb'"\\ud800"')

        def missing():
            sdk_log.info("\udc00")
            raise NotFound("there is no rail `\ud800`, 😀")

        log.lines.clear()
        self.assertEqual(call(missing), "refused: there is no rail `\ufffd`, 😀")
        self.assertEqual(log.lines, [(log.Level.INFO, "\ufffd")])

    def test_the_output_is_bytes_or_json(self):
        async def later():
            return Rail("5v")

        for value, expected in [(None, b"null"), ("é", '"é"'.encode()), (bytearray(b"x"), b"x"), ([1], b"[1]")]:
            self.assertEqual(call(lambda: value), expected)
        self.assertEqual(json.loads(call(later)), {"name": "5v", "on": True})
        expected = "refused: failed to write the answer: a value of the type `object` is neither bytes nor JSON"
        self.assertEqual(call(object), expected)

    def test_the_caller_is_given_beside_the_input(self):
        def act(caller: Caller, name: str):
            return [name, caller.scope]

        self.assertEqual(call(act, b'"5v"'), b'["5v","service"]')

    def test_an_error_is_for_the_caller_and_a_bug_is_logged_and_ends_the_call(self):
        async def missing():
            raise NotFound("there is no rail `x`")

        self.assertEqual(call(missing), "refused: there is no rail `x`")
        log.lines.clear()
        with self.assertRaises(KeyError):
            call(lambda: {}["x"])
        self.assertIn("KeyError: 'x'\n    at <lambda> (", log.lines[0][1])

    def test_a_function_that_cannot_be_an_action_is_refused_at_the_build(self):
        def twice(a, b): ...
        def all(**values): ...
        def union(a: int | str): ...
        def pieces():
            yield 1

        async def later():
            yield 1

        for function in [twice, all, union, pieces, later]:
            with self.assertRaises(TypeError):
                action_provider({"set": function})

        @dataclass
        class Visit:
            at: datetime.datetime

        def visits(visits: list[Visit]): ...
        def on(day: datetime.date): ...

        for function, message in [
            (visits, "parameter `visits` of `visits`: field `[].at` of the input cannot be of the type `datetime.datetime`, only "),
            (on, "parameter `day` of `on`: the input cannot be of the type `datetime.date`, only "),
        ]:
            with self.assertRaises(TypeError) as raised:
                action_provider({"set": function})
            self.assertTrue(str(raised.exception).startswith(message), raised.exception)


UPDATE = wit_events.Event_UpdateGate(wit_events.Update(7, "u", ["press"], None, "c2"))
RELEASE = wit_events.Event_HealthGate(wit_events.Release(7, "u", ["press"], "c2"))
SCHEDULE = wit_events.Event_Schedule("nightly")


class Events(unittest.TestCase):
    def answers(self, function):
        """Returns the answers to a gate for updates, to one for releases, and to a schedule."""
        return [asyncio.run(watcher(function)().handle(event)) for event in [UPDATE, RELEASE, SCHEDULE]]

    def test_a_gate_goes_on_postpones_or_refuses(self):
        async def watch(event):
            match event:
                case UpdateGate(services=["press"], running_commit=None, target_commit="c2"):
                    return Postpone("the press is running \ud800", seconds=60)
                case HealthGate(commit="c2"):
                    return Refuse("it prints blank pages \ud800")
                case Schedule(name="nightly"):
                    return None
            raise AssertionError(event)

        postponement = wit_events.Postponement("the press is running \ufffd", 60)
        expected = [wit_events.Answer_Postpone(postponement), wit_events.Answer_Refuse("it prints blank pages \ufffd")]
        self.assertEqual(self.answers(watch), [*expected, wit_events.Answer_GoOn()])
        self.assertEqual(self.answers(lambda event: None), [wit_events.Answer_GoOn()] * 3)

    def test_a_gate_that_returns_something_else_fails_and_other_events_go_on(self):
        def pieces():
            yield Postpone("the press is running", seconds=60)

        for value, shown in [
            (False, "False"),
            (True, "True"),
            ({"seconds": 60}, "{'seconds': 60}"),
            (Postpone, "<class 'supervisor_sdk.events.Postpone'>"),
            (pieces(), "<generator object "),
            ("x" * 100_000, "'xx"),
        ]:

            def watch(event):
                return value

            for event, name in [(UPDATE, "UpdateGate"), (RELEASE, "HealthGate")]:
                log.lines.clear()
                with self.assertRaises(TypeError) as raised:
                    asyncio.run(watcher(watch)().handle(event))
                message = str(raised.exception)
                self.assertTrue(message.startswith(f"`watch` answers `{name}` with `{shown}"), message)
                self.assertIn("must return `None`", message)
                self.assertLess(len(message), 300)
                self.assertIn(message, log.lines[0][1])
            self.assertEqual(asyncio.run(watcher(watch)().handle(SCHEDULE)), wit_events.Answer_GoOn())

    def test_a_function_that_yields_is_refused_at_the_build(self):
        def pieces(event):
            yield Postpone("the press is running", seconds=60)

        async def later(event):
            yield Postpone("the press is running", seconds=60)

        for function, message in [
            (pieces, "`pieces` provides `events` and yields"),
            (later, "`later` provides `events` and yields"),
            ("watch", "not a function"),
        ]:
            with self.assertRaisesRegex(TypeError, message):
                watcher(function)


class Slots:
    calls = []

    async def status(self):
        return Status("1.0", committed=True, installing=7)

    async def stage(self, source: str, version: str):
        if version == "odd":
            raise Unavailable("the source is not reached")
        self.calls.append((source, version))

    async def activate(self):
        self.calls.append("activate")

    def commit(self):
        self.calls.append("commit")

    async def roll_back(self):
        raise RuntimeError("no such slot")


class OsUpdates(unittest.TestCase):
    def test_each_step_calls_the_method_of_its_name(self):
        updater = os_updater(Slots)()
        self.assertEqual(asyncio.run(updater.status()), OsStatus("1.0", None, True, 7, None))
        asyncio.run(updater.stage("/bundle", "2.0"))
        asyncio.run(updater.activate())
        asyncio.run(updater.commit())
        self.assertEqual(Slots.calls, [("/bundle", "2.0"), "activate", "commit"])

    def test_an_error_is_for_people_and_a_bug_is_logged_and_ends_the_call(self):
        with self.assertRaises(Err) as raised:
            asyncio.run(os_updater(Slots)().stage("/bundle", "odd"))
        self.assertEqual(raised.exception.value, "the source is not reached")
        log.lines.clear()
        with self.assertRaises(RuntimeError):
            asyncio.run(os_updater(Slots)().roll_back())
        self.assertIn("RuntimeError: no such slot", log.lines[0][1])

    def test_what_the_interface_does_not_take_is_refused_by_the_sdk(self):
        with self.assertRaises(ValueError):
            Status("1.0", committed=True, installing=256)
        with self.assertRaises(TypeError):
            Status("1.0", committed="no")

    def test_a_class_without_a_method_is_refused_at_the_build(self):
        class Half(Provider):
            async def status(self): ...

        with self.assertRaisesRegex(TypeError, "`Half` provides `os-update` without the method `stage`"):
            os_updater(Half)
        with self.assertRaises(TypeError):
            os_updater(Slots())


if __name__ == "__main__":
    unittest.main()
