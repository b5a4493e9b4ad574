"""Clocks and files of a plugin that asks for neither `clock` nor `files`."""

import asyncio
import datetime
import os
import pathlib
import sys
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from supervisor_sdk import Forbidden, files, sealing, time_outs, without_clock, without_files  # noqa: E402, F401


class Datetime(datetime.datetime):
    """A subclass, as packages have one."""


READS = {
    "time": lambda: time.time(),
    "time_ns": lambda: time.time_ns(),
    "monotonic": lambda: time.monotonic(),
    "perf_counter": lambda: time.perf_counter(),
    "localtime": lambda: time.localtime(),
    "gmtime": lambda: time.gmtime(None),
    "strftime": lambda: time.strftime("%Y"),
    "now": lambda: datetime.datetime.now(),
    "now of a zone": lambda: datetime.datetime.now(datetime.timezone.utc),
    "utcnow": lambda: Datetime.utcnow(),
    "now of a subclass": lambda: Datetime.now(),
    "today": lambda: datetime.datetime.today(),
    "date.today": lambda: datetime.date.today(),
}
USES = {
    "open": lambda: open(__file__).close(),
    "listdir": lambda: os.listdir("."),
    "stat": lambda: os.stat("."),
    "scandir": lambda: os.scandir(".").close(),
    "path": lambda: pathlib.Path(__file__).read_bytes(),
}


class WithoutCapabilities(unittest.TestCase):
    def test_clocks_need_the_capability_except_while_the_plugin_is_imported(self):
        for name, use in READS.items():
            with self.subTest(name):
                use()
                with mock.patch.object(sealing, "is_serving", True):
                    with self.assertRaisesRegex(RuntimeError, 'add `clock = "why"` to \\[capabilities\\]'):
                        use()
        self.assertIsInstance(Datetime.now(), Datetime)

    def test_times_of_the_plugins_own_need_no_capability(self):
        with mock.patch.object(sealing, "is_serving", True):
            self.assertEqual(time.strftime("%Y", time.gmtime(0)), "1970")
            self.assertEqual(datetime.datetime(2020, 1, 2).isoformat(), "2020-01-02T00:00:00")
            self.assertEqual(datetime.datetime.fromtimestamp(0, datetime.timezone.utc).year, 1970)

    def test_waiting_for_a_clock_is_an_error_that_names_what_to_use(self):
        time.sleep(0)
        with mock.patch.object(sealing, "is_serving", True):
            with self.assertRaisesRegex(RuntimeError, "use `await timer.sleep\\(SECONDS\\)` of `supervisor_sdk`.*`clock"):
                time.sleep(0)
        loop = time_outs._Loop()
        time_outs.explain()
        for wait in [lambda: loop.call_later(1, print), lambda: loop.call_at(1, print), loop.time]:
            with self.assertRaisesRegex(NotImplementedError, "use `await timer.sleep\\(SECONDS\\)` of `supervisor_sdk`"):
                wait()
        # It only lets others run.
        asyncio.run(asyncio.sleep(0))

    def test_files_need_the_capability_except_while_the_plugin_is_imported(self):
        for name, use in USES.items():
            with self.subTest(name):
                use()
                with mock.patch.object(sealing, "is_serving", True):
                    with self.assertRaisesRegex(PermissionError, 'add `files = "why"` to \\[capabilities\\]'):
                        use()
        # A module that can do without a file does so.
        with mock.patch.object(sealing, "is_serving", True):
            self.assertFalse(os.path.exists(__file__))
            with self.assertRaisesRegex(Forbidden, 'failed to write `/a`: .* add `files = "why"` to \\[capabilities\\]'):
                files.write("/a", "")


if __name__ == "__main__":
    unittest.main()
