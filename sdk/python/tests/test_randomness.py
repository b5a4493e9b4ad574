"""Random numbers of plugins with and without the capability `random`."""

import os
import pathlib
import random
import secrets
import sys
import unittest
import uuid
from unittest import mock

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from supervisor_sdk import randomness  # noqa: E402

USES = {
    "os.urandom": lambda: os.urandom(8),
    "random.random": lambda: random.random(),
    "random.choice": lambda: random.choice(range(99)),
    "random.shuffle": lambda: random.shuffle(list(range(99))),
    "random.randbytes": lambda: random.randbytes(8),
    "random.gauss": lambda: random.gauss(0, 1),
    "random.seed": lambda: random.seed(),
    "Random": lambda: random.Random().random(),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "secrets": lambda: secrets.token_hex(),
    "uuid": lambda: uuid.uuid4(),
}


class Randomness(unittest.TestCase):
    def test_random_numbers_need_the_capability_except_while_the_plugin_is_imported(self):
        for name, use in USES.items():
            with self.subTest(name):
                use()
                with mock.patch.object(randomness, "_is_serving", False):
                    randomness.begin()
                    with self.assertRaisesRegex(RuntimeError, 'add `random = "why"` to \\[capabilities\\]'):
                        use()
                    with mock.patch.object(randomness, "is_granted", True):
                        use()

    def test_a_generator_with_a_seed_of_its_own_needs_no_capability(self):
        with mock.patch.object(randomness, "_is_serving", True):
            self.assertEqual(random.Random(5).random(), random.Random(5).random())


if __name__ == "__main__":
    unittest.main()
