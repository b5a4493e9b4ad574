"""The errors that a handler answers with."""


class Error(Exception):
    """A failure that the caller receives as `{"status":"failed","message":...}`.

    `message` is for the caller: say which input was wrong, and in what way. Secrets and causes inside the plugin belong
    in `log`. `status` is from 400 to 599; `code` is a short word for logs and tests, which the caller does not see.
    """

    status = 500
    code = "internal"

    def __init__(self, message: object, status: int | None = None, code: str | None = None):
        super().__init__(str(message))
        if status is not None:
            self.status = status
        if code is not None:
            self.code = code

    @property
    def message(self) -> str:
        """The text for the caller."""
        return str(self)


class BadRequest(Error):
    """400: the request does not have the form that the route expects."""

    status, code = 400, "bad-request"


class Unauthorized(Error):
    """401: the caller's key does not give access to this. (The host has already checked that there is one.)"""

    status, code = 401, "unauthorized"


class Forbidden(Error):
    """403: the caller is known, but not allowed to do this."""

    status, code = 403, "forbidden"


class NotFound(Error):
    """404: what the request names does not exist."""

    status, code = 404, "not-found"


class Conflict(Error):
    """409: the request conflicts with the current state."""

    status, code = 409, "conflict"


class TooLarge(Error):
    """413: the request, or what it asks to store, is too large."""

    status, code = 413, "too-large"


class UnsupportedType(Error):
    """415: the body has a type that the route does not accept."""

    status, code = 415, "unsupported-type"


class Locked(Error):
    """423: an update lock is held."""

    status, code = 423, "locked"


class TooMany(Error):
    """429: too many requests."""

    status, code = 429, "too-many"


class Internal(Error):
    """500: the plugin failed."""


class BadGateway(Error):
    """502: something that the plugin queried returned no usable answer."""

    status, code = 502, "bad-gateway"


class Unavailable(Error):
    """503: not possible now; the same request may succeed later."""

    status, code = 503, "unavailable"
