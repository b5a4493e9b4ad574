"""The common part of the answers of `http` and `api`, which have been received completely."""

import json as json_format
from typing import Any, ClassVar

from .errors import BadGateway


class WholeAnswer:
    status: int
    body: bytes
    _answerer: ClassVar[str]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Reads the body. Raises `BadGateway` if the status is not 200 to 299, or the body is not JSON."""
        if not self.ok:
            raise BadGateway(f"{self._answerer} answered {self.status}")
        try:
            return json_format.loads(self.body)
        except ValueError as error:
            raise BadGateway(f"an unexpected answer: {error}") from None
