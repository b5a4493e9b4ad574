package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_types"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
	"supervisor/log"
)

// Handler answers the requests on a route.
type Handler func(*Request) (*Response, error)

var routes map[string]Handler

// Serve sets the functions that are called for the requests on their routes, by METHOD PATH. Used by the file that the
// build writes from plugin.toml.
func Serve(table map[string]Handler) {
	routes = table
}

// Handle serves one request. Used by the package that the component exports.
func Handle(request wit.Request) witTypes.Result[wit.Response, wit.Error] {
	defer panics.Log()
	response, err := routes[request.Method+" "+request.Route](requestOf(request))
	if err != nil {
		return witTypes.Err[wit.Response, wit.Error](errorOf(err))
	}
	if response == nil {
		response = &Response{Status: 200, body: wit.MakeBodyEmpty()}
	}
	answer := wit.Response{Status: statusOf(response.Status), Body: response.body}
	for _, field := range response.Headers {
		header := witTypes.Tuple2[string, []uint8]{F0: strings.ToLower(field.Name), F1: []byte(field.Value)}
		answer.Headers = append(answer.Headers, header)
	}
	return witTypes.Ok[wit.Response, wit.Error](answer)
}

func requestOf(request wit.Request) *Request {
	r := &Request{
		Method: request.Method, Path: request.Path, Route: request.Route,
		params: request.Params, query: valuesOf(request.Query), headers: request.Headers,
	}
	switch request.Body.Tag() {
	case wit.BodyBytes:
		r.Body = bytes.NewReader(request.Body.Bytes())
	case wit.BodyStream:
		r.Body = &streamReader{request.Body.Stream()}
	default:
		r.Body = bytes.NewReader(nil)
	}
	return r
}

// valuesOf reads a query as browsers do. The package url leaves out a parameter with an invalid escape or a semicolon, so a
// handler would use its default, and the caller would not learn that the value is wrong.
func valuesOf(query string) url.Values {
	values := url.Values{}
	for _, part := range strings.Split(query, "&") {
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			values.Add(decoded(name), decoded(value))
		}
	}
	return values
}

// decoded decodes %41 and +.
func decoded(text string) string {
	var result strings.Builder
	for at := 0; at < len(text); at++ {
		char := text[at]
		if char == '+' {
			char = ' '
		} else if char == '%' && at+2 < len(text) {
			// An invalid escape stays as it is.
			if value, err := strconv.ParseUint(text[at+1:at+3], 16, 8); err == nil {
				char = byte(value)
				at += 2
			}
		}
		result.WriteByte(char)
	}
	return result.String()
}

func errorOf(err error) wit.Error {
	var answer *Error
	if errors.As(err, &answer) {
		return wit.Error{Status: statusOf(answer.Status), Code: answer.Code, Message: validtext.Of(answer.Message)}
	}
	// The caller does not receive the text of any other error.
	log.Error(err)
	return wit.Error{Status: 500, Code: "internal", Message: "the plugin failed; its log says why"}
}

// statusOf converts a status for the interface. Of a larger number, a conversion would keep only the lowest bits: 65736
// would be 200.
func statusOf(status int) uint16 {
	if status < 0 || status > math.MaxUint16 {
		panic(fmt.Sprintf("the status of an answer is %d, which is not from 0 to %d", status, math.MaxUint16))
	}
	return uint16(status)
}
