from dataclasses import dataclass
from typing import Any


@dataclass
class Body_Empty:
    pass


@dataclass
class Body_Bytes:
    value: bytes


@dataclass
class Body_Stream:
    value: Any


Body = Body_Empty | Body_Bytes | Body_Stream


@dataclass
class Request:
    method: str
    path: str
    route: str
    params: list
    query: str
    headers: list
    body: Body


@dataclass
class Response:
    status: int
    headers: list
    body: Body


@dataclass
class Error:
    status: int
    code: str
    message: str
