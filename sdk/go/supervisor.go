// Package supervisor is the SDK for plugins of the device supervisor in Go.
//
// A plugin is a plugin.toml and a package main with one function for each of its routes:
//
//	func hello(r *supervisor.Request) (*supervisor.Response, error) {
//		return supervisor.Textf("Hello, %s!\n", r.Param("name")), nil
//	}
//
// The packages store, timer, log and config below this one wrap the capabilities of these names; the packages of all
// other capabilities are in imports, which the build writes for those that plugin.toml requests; the errors of their
// functions are values of the type error. The package events is for plugins that are called for events on the device;
// the package provider describes functions that perform the plugin's own actions, and the packages identify,
// bootconfig, proxyredirector and osupdate what provides the typed actions of these names. Each call runs in a fresh
// instance, which is thrown away afterwards. The time of day, files and random numbers are those of Go's own packages,
// if plugin.toml asks for clock, files and random. Without clock, wait with timer.Sleep.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/async"
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/imports/body_stream"
	wit "supervisor/imports/platform_supervisor_types"
	"supervisor/internal/jsontext"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

// The types of bodies.
const (
	TypeJSON = "application/json; charset=utf-8"
	TypeText = "text/plain; charset=utf-8"
)

// The longest body that is collected in memory.
const wholeBody = 10 << 20

// Request is one HTTP request on one of the plugin's routes. The host has checked the caller's key, and has removed it
// from the query and the headers.
type Request struct {
	Method string
	Path   string // As received, percent-encoded, without the query.
	Route  string // The matching pattern of plugin.toml.
	Body   io.Reader

	params  []witTypes.Tuple2[string, string]
	query   url.Values
	headers []witTypes.Tuple2[string, []uint8]
}

// Param returns the value of the route's :name.
func (r *Request) Param(name string) string {
	for _, pair := range r.params {
		if pair.F0 == name {
			return pair.F1
		}
	}
	return ""
}

// Query returns the first value of a query parameter, or otherwise if it is missing. U+FFFD replaces what is not UTF-8.
func (r *Request) Query(name, otherwise string) string {
	if values := r.query[name]; len(values) > 0 {
		return validtext.Of(values[0])
	}
	return otherwise
}

// QueryInt returns a query parameter as a whole number, in digits with or without a minus sign before them, or otherwise
// if it is missing. The error is a 400 that names the parameter.
func (r *Request) QueryInt(name string, otherwise int) (int, error) {
	text := r.Query(name, "")
	if text == "" && !r.query.Has(name) {
		return otherwise, nil
	}
	number, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) {
		return 0, BadRequest("query parameter `%s` must be from %d to %d, not `%.64s`", name, math.MinInt, math.MaxInt, text)
	}
	// The function also accepts a plus sign.
	if err != nil || strings.HasPrefix(text, "+") {
		return 0, BadRequest("query parameter `%s` must be a whole number, not `%.64s`", name, text)
	}
	return number, nil
}

// Header returns the first value of a header field.
func (r *Request) Header(name string) string {
	for _, field := range r.headers {
		if strings.EqualFold(field.F0, name) {
			return string(field.F1)
		}
	}
	return ""
}

// JSON reads a JSON body into value. If the body does not fit, the error is the answer to the caller.
func (r *Request) JSON(value any) error {
	declared, _, _ := strings.Cut(r.Header("content-type"), ";")
	declared = strings.ToLower(strings.TrimSpace(declared))
	if declared != "" && declared != "application/json" && !strings.HasSuffix(declared, "+json") {
		return UnsupportedType("the body is `%.100s`, but must be `application/json`", declared)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, wholeBody+1))
	switch {
	case err != nil:
		return err
	case len(body) > wholeBody:
		return TooLarge("the body is longer than %d bytes", wholeBody)
	case len(body) == 0:
		return BadRequest("the body is missing: it must be JSON")
	}
	if err := jsontext.Unmarshal(body, value); err != nil {
		if wrong, ok := err.(*json.UnmarshalTypeError); ok {
			return BadRequest("field `%s` of the body must be of the type %s, not a JSON %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return BadRequest("the body %s", err)
	}
	return nil
}

// Response is an answer with its status, headers and body.
type Response struct {
	Status  int
	Headers []Header
	body    wit.Body
}

// Header is a field of an answer.
type Header struct{ Name, Value string }

// Bytes answers 200 with a body of a type.
func Bytes(contentType string, body []byte) *Response {
	return &Response{200, []Header{{"content-type", contentType}}, wit.MakeBodyBytes(body)}
}

// Text answers 200 with text.
func Text(text string) *Response {
	return Bytes(TypeText, []byte(text))
}

// Textf answers 200 with formatted text.
func Textf(format string, values ...any) *Response {
	return Text(fmt.Sprintf(format, values...))
}

// JSON answers 200 with a value in JSON.
func JSON(value any) *Response {
	body, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("failed to write the answer: %v", err))
	}
	return Bytes(TypeJSON, body)
}

// Stream answers 200 with a body that write writes piece by piece while the caller reads. It runs after the handler has
// returned. Once the caller has disconnected, the writer fails: return then.
func Stream(contentType string, write func(io.Writer) error) *Response {
	writer, reader := body_stream.Make()
	async.Afterwards(func() {
		defer panics.Log()
		defer writer.Drop()
		// The only expected error is that of the writer itself.
		if err := write(&streamWriter{writer}); err != nil && err != errReaderLeft {
			panic(err)
		}
	})
	return &Response{200, []Header{{"content-type", contentType}}, wit.MakeBodyStream(reader)}
}

// Forward answers 200 with a stream that a function of the device returned, such as the journal. The bytes pass outside the
// plugin, also after the call has ended.
func Forward(contentType string, stream *witTypes.StreamReader[uint8]) *Response {
	return &Response{200, []Header{{"content-type", contentType}}, wit.MakeBodyStream(stream)}
}

var errReaderLeft = fmt.Errorf("the caller has disconnected")

type streamWriter struct{ wit *witTypes.StreamWriter[uint8] }

func (w *streamWriter) Write(bytes []byte) (int, error) {
	if len(bytes) == 0 {
		return 0, nil
	}
	count := int(w.wit.WriteAll(bytes))
	if count < len(bytes) {
		return count, errReaderLeft
	}
	return count, nil
}

type streamReader struct{ wit *witTypes.StreamReader[uint8] }

func (r *streamReader) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	for {
		count := int(r.wit.Read(into))
		switch {
		case count > 0:
			return count, nil
		case r.wit.WriterDropped():
			return 0, io.EOF
		}
	}
}
