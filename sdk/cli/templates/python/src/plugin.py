"""A plugin. plugin.toml says which routes it answers and what it needs, and names the functions in this file."""

from supervisor_sdk import store


async def hello(name: str):
    # Each call runs in a fresh instance, so lasting data belongs in the store.
    count = await store.update_json("count", lambda count: (count or 0) + 1)
    return f"Hello, {name}! This is call {count}.\n"
