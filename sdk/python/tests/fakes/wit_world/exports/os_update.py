from dataclasses import dataclass


@dataclass
class OsStatus:
    running: str
    staged: str | None
    committed: bool
    installing: int | None
    failure: str | None
