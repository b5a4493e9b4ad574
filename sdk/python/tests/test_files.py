"""Files of the host that are written completely or not at all, without a device."""

import errno
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from supervisor_sdk import Conflict, Forbidden, Internal, NotFound, TooLarge, files  # noqa: E402

MOST = 256 << 10


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_a_file_is_replaced_and_what_a_power_cut_left_is_no_hindrance(self):
        path = self.folder / "5v"
        pathlib.Path(f"{path}.new").write_text("cut sho")
        files.write(path, "é")
        self.assertEqual(path.read_bytes(), "é".encode())
        for content in [b"\xff\0", bytearray(b"on"), b"", b"a" * MOST]:
            files.write(str(path), content)
            self.assertEqual(path.read_bytes(), content)
            self.assertEqual(self.names(), ["5v"])

    def test_the_same_content_is_not_written(self):
        path = self.folder / "5v"
        files.write(path, "on")
        before = path.stat().st_ino
        files.write(path, b"on")
        self.assertEqual(path.stat().st_ino, before)
        files.write(path, b"of")
        self.assertNotEqual(path.stat().st_ino, before)

    def test_a_file_reaches_the_disk_before_it_gets_its_name_and_its_name_afterwards(self):
        calls = []

        def record(name, function):
            def call(*arguments, **named):
                calls.append(name)
                return function(*arguments, **named)

            return mock.patch.object(os, name, call)

        with record("fsync", os.fsync), record("replace", os.replace):
            files.write(self.folder / "5v", "on")
        self.assertEqual(calls, ["fsync", "replace", "fsync"])

    def test_a_failure_leaves_the_old_file_and_nothing_else(self):
        path = self.folder / "5v"
        files.write(path, "on")
        full = OSError(errno.ENOSPC, "No space left on device")
        for function in ["fsync", "replace"]:
            with mock.patch.object(os, function, side_effect=full):
                with self.assertRaisesRegex(Internal, "failed to write `.*/5v`: the disk is full"):
                    files.write(path, "off")
            self.assertEqual(path.read_text(), "on")
            self.assertEqual(self.names(), ["5v"])
        # If the temporary file cannot be removed, the first error counts.
        with mock.patch.object(os, "fsync", side_effect=full), mock.patch.object(os, "remove", side_effect=OSError("busy")):
            with self.assertRaisesRegex(Internal, "the disk is full"):
                files.write(path, "off")

    def test_an_error_names_the_path_the_reason_and_what_to_do(self):
        (self.folder / "more").mkdir()
        (self.folder / "5v").write_text("on")
        (self.folder / "loop").symlink_to("loop")
        table = [
            (self.folder / "gone/5v", NotFound, "there is no such folder, or `files` in the plugin's section of the policy"),
            (self.folder / "more", Conflict, "it is a folder"),
            (self.folder / "5v/a", Conflict, "it is below a file"),
            (self.folder / ("a" * 5000), Internal, "File name too long"),
        ]
        for path, kind, reason in table:
            with self.subTest(reason), self.assertRaises(kind) as raised:
                files.write(path, "")
            self.assertIn(f": {reason}", raised.exception.message)
            self.assertIn(f"failed to write `{self.folder}/", raised.exception.message)
            self.assertLess(len(raised.exception.message), 450)
        with mock.patch("builtins.open", side_effect=PermissionError(errno.EPERM, "Operation not permitted")):
            with self.assertRaisesRegex(Forbidden, "maps the folder without `write = true`, or the path leads out of it"):
                files.write(self.folder / "5v", "off")
        self.assertEqual(self.names(), ["5v", "loop", "more"])
        # A link is replaced, wherever it leads.
        files.write(self.folder / "loop", "on")
        self.assertFalse((self.folder / "loop").is_symlink())

    def test_a_pipe_is_replaced_without_waiting_for_its_other_end(self):
        path = str(self.folder / "pipe")
        os.mkfifo(path)
        real = open

        def checked(name, *arguments):
            self.assertNotEqual(name, path, "it would wait")
            return real(name, *arguments)

        with mock.patch("builtins.open", checked):
            files.write(path, "")
        self.assertTrue(os.path.isfile(path))

    def test_a_content_that_is_too_large_or_none_is_not_written(self):
        for content in [b"a" * (MOST + 1), "é" * (MOST // 2 + 1)]:
            with self.assertRaisesRegex(TooLarge, "the content has \\d+ bytes, and at most 262144 are written"):
                files.write(self.folder / "5v", content)
        for content in [5, None, ["on"]]:
            with self.assertRaises(TypeError):
                files.write(self.folder / "5v", content)
        with self.assertRaises(TypeError):
            files.write(5, "on")
        self.assertEqual(self.names(), [])


if __name__ == "__main__":
    unittest.main()
