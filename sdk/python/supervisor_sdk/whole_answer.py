"""The common part of the answers of `http` and `api`, which have been received completely."""

from typing import Any, ClassVar

from . import json_text
from .errors import BadGateway


class WholeAnswer:
    """An answer that has been received completely."""

    status: int
    body: bytes
    _answerer: ClassVar[str]

    @property
    def ok(self) -> bool:
        """Whether the status is from 200 to 299."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """Returns the body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Reads the body. Raises `BadGateway` if the status is not 200 to 299, or the body is not JSON."""
        if not self.ok:
            raise BadGateway(f"{self._answerer} answered {self.status}")
        try:
            return json_text.parse(self.body)
        except ValueError as error:
            raise BadGateway(f"an unexpected answer: it {error}") from None
