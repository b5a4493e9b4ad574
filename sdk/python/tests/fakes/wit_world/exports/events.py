from dataclasses import dataclass


@dataclass
class Update:
    app_id: int
    app_uuid: str
    services: list
    running_commit: str | None
    target_commit: str | None


@dataclass
class Release:
    app_id: int
    app_uuid: str
    services: list
    commit: str


@dataclass
class Event_Schedule:
    value: str


@dataclass
class Event_UpdateGate:
    value: Update


@dataclass
class Event_HealthGate:
    value: Release


@dataclass
class Postponement:
    reason: str
    seconds: int


@dataclass
class Answer_GoOn:
    pass


@dataclass
class Answer_Postpone:
    value: Postponement


@dataclass
class Answer_Refuse:
    value: str


Event = Event_Schedule | Event_UpdateGate | Event_HealthGate
Answer = Answer_GoOn | Answer_Postpone | Answer_Refuse
