"""The Python code of docs/plugin-tool.md, docs/os-update.md, docs/typed-actions.md and docs/plugins.md, with its table: it
compiles, and the SDK has what it uses."""

import ast
import builtins
import pathlib
import unittest

SDK = pathlib.Path(__file__).parent.parent / "supervisor_sdk"
DOCS = SDK.parent.parent.parent / "docs"
VARIABLES = {"url", "path", "service", "interface", "member", "name", "rail", "secrets", "time"}
"""What the cells of the table do not define: variables, and modules of Python."""


def names_of(module: str) -> set[str]:
    """Returns the names that a module of the SDK defines, without importing it: that takes the device's interfaces."""
    names = set()
    for node in ast.walk(ast.parse((SDK / f"{module}.py").read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=imported):
                names.update(alias.asname or alias.name for alias in imported)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return names


def modules() -> set[str]:
    """Returns the modules that a plugin imports from the SDK."""
    for node in ast.parse((SDK / "__init__.py").read_text()).body:
        if isinstance(node, ast.If):
            return {alias.name for statement in node.body for alias in statement.names}
    raise AssertionError("the SDK imports its modules under a condition")


CLASSES = names_of("__init__") - modules()


def unknown(code: str) -> list[str]:
    """Returns what the code uses of the SDK, and the SDK does not have."""
    tree = ast.parse(code)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="supervisor_sdk", names=imported):
                found += [alias.name for alias in imported if alias.name not in modules() | CLASSES]
            case ast.ImportFrom(module=str(module), names=imported) if module.startswith("supervisor_sdk."):
                has = names_of(module.removeprefix("supervisor_sdk."))
                found += [alias.name for alias in imported if alias.name not in has]
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules():
                found += [f"{module}.{name}"] if name not in names_of(module) else []
            case ast.Attribute(value=ast.Name(id="Caller"), attr=name):
                found += [f"Caller.{name}"] if name not in names_of("caller") else []
    return found


class Documentation(unittest.TestCase):
    def test_the_code_of_the_pages_uses_what_the_sdk_has(self):
        for page in ["plugin-tool.md", "plugins.md", "os-update.md", "typed-actions.md"]:
            blocks = (DOCS / page).read_text().split("```python\n")[1:]
            self.assertGreater(len(blocks), 0, page)
            for block in blocks:
                code = block.split("```")[0]
                self.assertEqual(unknown(code), [], code)

    def test_the_calls_of_the_table_use_what_the_sdk_has(self):
        section = (DOCS / "plugins.md").read_text().split("\n## Tasks\n")[1]
        header, _, *rows = (line for line in section.split("\n\n")[1].splitlines())
        self.assertTrue(header.endswith("| Python |"), header)
        self.assertGreater(len(rows), 20)
        known = modules() | CLASSES | VARIABLES | set(dir(builtins))
        for row in rows:
            cell = row.replace("\\|", "").split("|")[5]
            call = cell.split("`")[1]
            code = f"async def task():\n    {call}{' pass' if call.endswith(':') else ''}\n"
            self.assertEqual(unknown(code), [], code)
            names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
            arguments = {node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.arg)}
            defined = known | arguments | {node.id for node in names if isinstance(node.ctx, ast.Store)}
            self.assertEqual([node.id for node in names if node.id not in defined], [], code)


if __name__ == "__main__":
    unittest.main()
