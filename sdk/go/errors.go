package supervisor

import "fmt"

// Error is a failure that the caller receives as {"status":"failed","message":...}. The message is for the caller: say
// which input was wrong, and in what way.
type Error struct {
	Status  int    // From 400 to 599.
	Code    string // A short word for logs and tests, which the caller does not see.
	Message string
}

func (e *Error) Error() string {
	return e.Message
}

func failure(status int, code, format string, values []any) error {
	return &Error{status, code, fmt.Sprintf(format, values...)}
}

// BadRequest is a 400: the request does not have the form that the route expects.
func BadRequest(format string, values ...any) error {
	return failure(400, "bad-request", format, values)
}

// Forbidden is a 403: the caller is known, but not allowed to do this.
func Forbidden(format string, values ...any) error { return failure(403, "forbidden", format, values) }

// NotFound is a 404: what the request names does not exist.
func NotFound(format string, values ...any) error { return failure(404, "not-found", format, values) }

// Conflict is a 409: the request conflicts with the current state.
func Conflict(format string, values ...any) error { return failure(409, "conflict", format, values) }

// TooLarge is a 413: the request, or what it asks to store, is too large.
func TooLarge(format string, values ...any) error { return failure(413, "too-large", format, values) }

// UnsupportedType is a 415: the body has a type that the route does not accept.
func UnsupportedType(format string, values ...any) error {
	return failure(415, "unsupported-type", format, values)
}

// Internal is a 500: the plugin failed.
func Internal(format string, values ...any) error { return failure(500, "internal", format, values) }

// Unavailable is a 503: not possible now; the same request may succeed later.
func Unavailable(format string, values ...any) error {
	return failure(503, "unavailable", format, values)
}
