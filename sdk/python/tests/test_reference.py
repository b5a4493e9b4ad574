"""docs/python-sdk.md is what the docstrings say. `UPDATE_DOCS=1 cargo xtask test` writes it again."""

import os
import unittest

import reference


class Reference(unittest.TestCase):
    maxDiff = None

    def test_the_page_is_what_the_docstrings_say(self):
        page = reference.page()
        if "UPDATE_DOCS" in os.environ:
            reference.PAGE.write_text(page)
        self.assertEqual(reference.PAGE.read_text(), page, "`UPDATE_DOCS=1 cargo xtask test` writes the page again")

    def test_each_capability_has_a_chapter_with_its_errors(self):
        page = reference.page()
        for module in reference.capabilities():
            chapter = page.partition(f"\n## {module}\n")[2].partition("\n## ")[0]
            # `wit/` has no errors for these: the first cannot fail, the second uses WASI, and the third says why in a text.
            expected = module not in ("device", "files", "identify")
            self.assertEqual("\n| Raises | When |\n" in chapter, expected, module)


if __name__ == "__main__":
    unittest.main()
