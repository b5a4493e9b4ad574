"""Writes the reference page of the SDK from its docstrings, and from the errors that `wit/` describes.

The modules are parsed and not imported, because an import needs the device's interfaces.
"""

import ast
import pathlib
import re
import textwrap

SDK = pathlib.Path(__file__).parent.parent / "supervisor_sdk"
REPOSITORY = SDK.parent.parent.parent
PAGE = REPOSITORY / "docs/python-sdk.md"
WIDTH = 120

FREE = ["caller", "config", "events", "log", "timer"]
"""The modules that need no capability."""
PROVIDERS = ["boot_config", "identify_window", "os_update"]
"""The modules that are only for typed actions that a plugin provides."""
HANDLERS = ["request", "body", "response"]
"""The modules whose classes handlers receive or return; plugins import these classes from `supervisor_sdk`."""
RECEIVED = {"Headers", "Request"}
"""Classes of which the SDK creates all instances."""
INTERNAL = {"MissingBody", "event_of", "into_wit", "of_stream", "of_wit", "stream_of"}
"""Public names that only the SDK itself uses."""

INTRODUCTION = """\
# The Python SDK

Everything that a plugin in Python can use, in the order handlers, errors, modules. [plugin-tool.md](plugin-tool.md#python)
shows how to begin, and [plugins.md](plugins.md#tasks) which function a task needs. This page is generated from the
docstrings of [the SDK](../sdk/python/supervisor_sdk); after a change there, `UPDATE_DOCS=1 cargo xtask test` writes it
again.

The last chapters are about [typed actions](plugins.md#actions-between-plugins) that a plugin provides.

Await functions that are marked `async`. Times are in seconds, as `int` or `float`. A capability needs a line in
`[capabilities]` of `plugin.toml`. If the device refuses a call of a capability, the function raises one of the
[errors](#errors). A handler need not catch it: the caller of the plugin then receives it. A number outside its range
raises `ValueError`; a value other than `True` and `False` for a `bool`, or other than text and bytes where those are
expected, raises `TypeError`.
"""


def page() -> str:
    """Returns the text of the page."""
    parts = [INTRODUCTION, "## Handlers\n"]
    _, handlers = documented(parsed("__init__")).split("\n\n", 1)
    parts.append(markdown(handlers))
    for module in HANDLERS:
        parts += [described(node, "") for node in definitions(parsed(module))]
    parts.append("## Errors\n")
    [error, *others] = definitions(parsed("errors"))
    parts.append(described(error, ""))
    parts.append(table("Error", "Status and meaning", [(node.name, documented(node)) for node in others]))
    parts += [chapter(module) for module in FREE + capabilities()]
    parts += [chapter(module) for module in PROVIDERS]
    return "\n".join(parts)


def capabilities() -> list[str]:
    """Returns the modules that need a capability."""
    for node in parsed("__init__").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_CAPABILITIES":
            return sorted(ast.literal_eval(node.value))
    raise AssertionError("`_CAPABILITIES` is missing in the package")


def chapter(module: str) -> str:
    """Returns the chapter about a module."""
    tree = parsed(module)
    parts = [f"## {module}\n", markdown(documented(tree))]
    # Plugins import this class from the package.
    prefix = "" if module == "caller" else f"{module}."
    parts += [described(node, prefix) for node in definitions(tree)]
    # Providers raise errors themselves.
    if module not in PROVIDERS and (rows := errors(module, tree)):
        parts.append(table("Raises", "When", rows))
    return "\n".join(parts)


def parsed(module: str) -> ast.Module:
    return ast.parse((SDK / f"{module}.py").read_text())


def definitions(tree: ast.AST) -> list:
    """Returns the public functions and classes of a module or a class."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node for node in tree.body if isinstance(node, kinds) and is_public(node.name)]


def is_public(name: str) -> bool:
    return not name.startswith("_") and name not in INTERNAL


def described(node, prefix: str) -> str:
    """Returns the description of a function, or of a class with its members."""
    name = prefix + node.name
    if not isinstance(node, ast.ClassDef):
        return f"**`{signature(node, name)}`**\n\n{markdown(documented(node))}"
    constructor = next((item for item in node.body if getattr(item, "name", "") == "__init__"), None)
    is_created = constructor is not None and node.name not in RECEIVED
    parts = [f"**`class {name}{parameters(constructor) if is_created else ''}`**\n", markdown(documented(node))]
    members = members_of(node)
    if "WholeAnswer" in map(ast.unparse, node.bases):
        members |= members_of(definitions(parsed("whole_answer"))[0]) | members
    parts += ["\n".join(members.values()) + "\n"] if members else []
    return "\n".join(parts)


def members_of(node: ast.ClassDef) -> dict[str, str]:
    """Returns a line for each attribute and method of a class, by its name."""
    lines = {}
    constructors = [item for item in node.body if getattr(item, "name", "") == "__init__"]
    for body in [node.body, *(constructor.body for constructor in constructors)]:
        for item, following in zip(body, [*body[1:], None]):
            if isinstance(item, ast.AnnAssign):
                # `self.method` in a constructor.
                name = ast.unparse(item.target).removeprefix("self.")
                text = following.value.value if is_text(following) else ""
                if is_public(name):
                    lines[name] = entry(f"{name}: {ast.unparse(item.annotation)}", text)
    for item in definitions(node):
        is_property = any(ast.unparse(decorator) == "property" for decorator in item.decorator_list)
        code = f"{item.name}: {ast.unparse(item.returns)}" if is_property else signature(item, item.name)
        lines[item.name] = entry(code, documented(item))
    return lines


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def documented(node) -> str:
    """Returns a docstring without its indentation: the SDK has no module, class or function without one."""
    text = ast.get_docstring(node, clean=False)
    assert text, f"`{getattr(node, 'name', node)}` has no docstring"
    # `inspect.cleandoc` would also remove that of an example, if no paragraph follows it.
    indentation = " " * node.body[0].col_offset
    return "\n".join(line.removeprefix(indentation) for line in text.splitlines()).strip()


def signature(node, name: str) -> str:
    kind = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{kind}{name}{parameters(node)} -> {ast.unparse(node.returns)}".replace("'", '"')


def parameters(node) -> str:
    """Returns the parameters in parentheses, without `self` and `cls`."""
    arguments = node.args
    by_place = arguments.posonlyargs + arguments.args
    pairs = zip(reversed(by_place), [*reversed(arguments.defaults), *[None] * len(by_place)])
    texts = [parameter(*pair) for pair in reversed(list(pairs)) if pair[0].arg not in ("self", "cls")]
    if arguments.posonlyargs:
        texts.insert(len(arguments.posonlyargs), "/")
    if arguments.kwonlyargs:
        texts += ["*", *map(parameter, arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        texts.append(f"**{parameter(arguments.kwarg, None)}")
    return f"({', '.join(texts)})".replace("'", '"')


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return f"{ast.unparse(argument)}{'' if default is None else f' = {ast.unparse(default)}'}"


def errors(module: str, tree: ast.Module) -> list[tuple[str, str]]:
    """Returns the errors of a capability: the class that the SDK raises, and when, as `wit/` says it."""
    path = REPOSITORY / f"wit/{module.replace('_', '-')}.wit"
    if not path.exists():
        # The interface is one of WASI.
        return []
    interface = path.read_text()
    variant = re.search(r"variant [a-z0-9-]+-error \{\n(.*?)\n    \}", interface, re.DOTALL)
    if variant is None:
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "answers"]
    classes = {keyword.arg: ast.unparse(keyword.value) for call in calls for keyword in call.keywords}
    rows = []
    for comment, case in re.findall(r"((?: *///.*\n)+) *([a-z-]+)(?:\(.*\))?,", variant[1] + "\n"):
        meaning = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
        name = "".join(word.capitalize() for word in case.split("-"))
        rows.append((classes.get(name, "Internal"), meaning))
    return rows


def table(first: str, second: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {first} | {second} |", "|---|---|"]
    lines += [f"| `{name}` | {' '.join(text.split())} |" for name, text in rows]
    return "\n".join(lines) + "\n"


def entry(code: str, text: str) -> str:
    return fill(f"- `{code}`" + (f": {text}" if text else ""), "  ")


def markdown(docstring: str) -> str:
    """Converts a docstring: paragraphs are filled, and indented blocks are code."""
    blocks = []
    for block in docstring.split("\n\n"):
        if block.startswith("    ") and blocks and blocks[-1].startswith("```"):
            # The code goes on after an empty line.
            blocks[-1] = f"{blocks[-1].removesuffix('```')}\n{code(block)}\n```"
        elif block.startswith("    "):
            blocks.append(f"```python\n{code(block)}\n```")
        elif block.startswith("- "):
            blocks.append("\n".join(fill(item, "  ") for item in re.split(r"\n(?=- )", block)))
        else:
            blocks.append(fill(re.sub(r"::$", ":", block), ""))
    return "\n\n".join(blocks) + "\n"


def code(block: str) -> str:
    """Returns code without the indentation of the whole example, which may begin in another block."""
    return "\n".join(line.removeprefix("    ") for line in block.splitlines())


def fill(text: str, indent: str) -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
