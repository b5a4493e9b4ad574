from dataclasses import dataclass


@dataclass
class CallerScope_Device:
    pass


@dataclass
class CallerScope_DeviceKey:
    pass


@dataclass
class CallerScope_LocalMode:
    pass


@dataclass
class AppService:
    app_id: int
    service: str


@dataclass
class CallerScope_Service:
    value: AppService


def scope():
    return CallerScope_Service(AppService(7, "web"))


def plugin():
    return None
