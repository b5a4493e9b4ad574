//! The journal and files of the host in a plugin in Go or C. The generator of bindings names the functions for streams after the
//! first interface with one, which for a plugin that reads the journal is that.

use crate::author::Author;
use crate::languages::can_build;

/// A plugin that passes on the journal, streams an answer of its own, reads the body of a request, and writes a file.
const GO: &str = r#"package main

import (
	"io"
	"os"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor"
	journal "supervisor/imports/platform_supervisor_journal"
)

func lines(*supervisor.Request) (*supervisor.Response, error) {
	read := journal.Read(journal.Options{Count: witTypes.Some[uint64](2)})
	if read.IsErr() {
		return nil, read.Err()
	}
	return supervisor.Forward(supervisor.TypeText, read.Ok()), nil
}

func refused(*supervisor.Request) (*supervisor.Response, error) {
	read := journal.Read(journal.Options{Unit: witTypes.Some("-a")})
	return nil, supervisor.BadRequest("%v", read.Err())
}

func echo(r *supervisor.Request) (*supervisor.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return supervisor.Stream(supervisor.TypeText, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	}), nil
}

func rail(*supervisor.Request) (*supervisor.Response, error) {
	if err := os.WriteFile("/rails/5v.new", []byte("off"), 0o644); err != nil {
		return nil, err
	}
	if err := os.Rename("/rails/5v.new", "/rails/5v"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/rails/5v")
	return supervisor.Text(string(text)), err
}
"#;

const C: &str = r#"#include <stdio.h>

#include "supervisor.h"

void lines(request_t *request) {
    platform_supervisor_journal_options_t options = {.count = {true, 2}};
    platform_supervisor_journal_stream_u8_t stream;
    platform_supervisor_journal_journal_error_t failure;
    if (!platform_supervisor_journal_read(&options, &stream, &failure)) {
        answer_errorf(request, 500, "%s", text_of(failure.val.other));
        return;
    }
    answer_forwarded(request, TEXT, stream);
}

void refused(request_t *request) {
    platform_supervisor_journal_options_t options = {.unit = {true, string_of("-a")}};
    platform_supervisor_journal_stream_u8_t stream;
    platform_supervisor_journal_journal_error_t failure;
    platform_supervisor_journal_read(&options, &stream, &failure);
    answer_errorf(request, 400, "%s", text_of(failure.val.invalid));
}

void echo(request_t *request) {
    stream_t *stream = answer_stream(request, TEXT);
    const uint8_t *bytes;
    for (size_t length; (length = body_chunk(request, &bytes)) > 0;) stream_write(stream, bytes, length);
}

void rail(request_t *request) {
    char text[8] = "";
    FILE *file = fopen("/rails/5v.new", "w");
    if (file == NULL || fputs("off", file) < 0 || fclose(file) != 0 || rename("/rails/5v.new", "/rails/5v") != 0 ||
        (file = fopen("/rails/5v", "r")) == NULL) {
        answer_errorf(request, 500, "the rail was not switched off");
        return;
    }
    fread(text, 1, sizeof text - 1, file);
    answer_textf(request, "%s", text);
}
"#;

const DEVICE: &str = r#"[journal]
lines = ["one", "two"]

[files]
"/run/rails/5v" = "on"

[[policy.files]]
host = "run/rails"
guest = "/rails"
write = true
"#;

const STEPS: &str = r#"
[[request]]
get = "/v3/lines"
answer = { status = 200, body = "one\ntwo\n" }

[[request]]
get = "/v3/refused"
answer = { status = 400, contains = ["`unit` of the journal begins with `-`"] }

[[request]]
post = "/v3/echo"
body = "a rail"
answer = { status = 200, body = "a rail" }

[[request]]
post = "/v3/rail"
answer = { status = 200, body = "off" }
"#;

fn check(language: &str, source: &str, text: &str) {
    if !can_build(language) {
        return;
    }
    let author = Author::with_project(language);
    author.write(&format!("rails/{source}"), text);
    let project = author.read("rails/plugin.toml");
    let (before, _) = project.split_once("[capabilities]\n").unwrap();
    let project = format!(
        "{before}[capabilities]\njournal = \"r\"\nfiles = \"r\"\n[routes]\n\"GET /v3/lines\" = \"lines\"\n\
         \"GET /v3/refused\" = \"refused\"\n\"POST /v3/echo\" = \"echo\"\n\"POST /v3/rail\" = \"rail\"\n"
    );
    author.write("rails/plugin.toml", &project);
    author.write("rails/device.toml", DEVICE);
    author.write("rails/test/hello.toml", STEPS);
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("4 passed, 0 failed"), "{}", passed.out);
    assert!(!passed.err.contains("warning"), "{}", passed.err);
}

#[test]
fn a_plugin_in_go_passes_on_the_journal_and_writes_a_file() {
    check("go", "src/plugin.go", GO);
}

#[test]
fn a_plugin_in_c_passes_on_the_journal_and_writes_a_file() {
    check("c", "src/plugin.c", C);
}
