from dataclasses import dataclass

calls = []


@dataclass
class Label:
    name: str
    value: str


async def set_gauge(name, labels, value):
    calls.append((name, {label.name: label.value for label in labels}, value))


async def add_to_counter(name, labels, increment):
    calls.append((name, {label.name: label.value for label in labels}, increment))
