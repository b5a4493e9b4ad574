from dataclasses import dataclass


@dataclass
class Setting:
    name: str
    value: str


@dataclass
class Refusal:
    name: str
    reason: str


@dataclass
class Comparison:
    changes: list
    refused: list
    foreign: list
    needs_reboot: bool
