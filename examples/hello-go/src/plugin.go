// Greets, counts its calls and streams: the example of a plugin in Go.
package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"supervisor"
	"supervisor/log"
	"supervisor/store"
	"supervisor/timer"
)

var greetings = map[string]string{"en": "Hello", "fr": "Salut"}

type greeting struct {
	Greeting string `json:"greeting"`
	Calls    int    `json:"calls"`
}

func hello(r *supervisor.Request) (*supervisor.Response, error) {
	language := r.Query("language", "en")
	word, found := greetings[language]
	if !found {
		return nil, supervisor.NotFound("there is no greeting in `%s`", language)
	}
	var calls int
	_, err := store.Update("calls", func(before []byte) []byte {
		calls, _ = strconv.Atoi(string(before))
		calls++
		return []byte(strconv.Itoa(calls))
	})
	if err != nil {
		return nil, err
	}
	log.Infof("%s is greeted", r.Param("name"))
	return supervisor.JSON(greeting{fmt.Sprintf("%s, %s!", word, r.Param("name")), calls}), nil
}

// Streams: each piece goes to the caller as soon as it is written.
func countdown(r *supervisor.Request) (*supervisor.Response, error) {
	seconds, err := r.QueryInt("seconds", 3)
	if err != nil {
		return nil, err
	}
	return supervisor.Stream(supervisor.TypeText, func(w io.Writer) error {
		for left := seconds; left > 0; left-- {
			if _, err := fmt.Fprintln(w, left); err != nil {
				return err
			}
			timer.Sleep(time.Second)
		}
		_, err := fmt.Fprintf(w, "Hello, %s!\n", r.Param("name"))
		return err
	}), nil
}

func order(r *supervisor.Request) (*supervisor.Response, error) {
	order := struct {
		Item  string `json:"item"`
		Count int    `json:"count"`
	}{Count: 1}
	if err := r.JSON(&order); err != nil {
		return nil, err
	}
	if order.Item == "" {
		return nil, supervisor.BadRequest("field `item` of the body is missing")
	}
	if order.Count < 1 {
		return nil, supervisor.BadRequest("`count` must be at least 1")
	}
	return supervisor.JSON(map[string]any{"ordered": order.Item, "count": order.Count}), nil
}

// Streams both ways: answers in capitals while the request is still arriving.
func shout(r *supervisor.Request) (*supervisor.Response, error) {
	return supervisor.Stream(supervisor.TypeText, func(w io.Writer) error {
		piece := make([]byte, 64<<10)
		for {
			count, err := r.Body.Read(piece)
			// A piece may end within a character, so only ASCII changes.
			for at, char := range piece[:count] {
				if 'a' <= char && char <= 'z' {
					piece[at] = char - 'a' + 'A'
				}
			}
			if _, err := w.Write(piece[:count]); err != nil {
				return err
			}
			if err == io.EOF {
				return nil
			}
		}
	}), nil
}
