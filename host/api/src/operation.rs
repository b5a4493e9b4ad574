//! The inputs and answers of a route's operation, declared next to its handler: the source of `GET /v3/openapi.json`.
//! Nothing here decides how a request is answered.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::answer::FailureBody;

/// A function that returns the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Returns the schema of `T`, by reference.
pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What a request's body may contain.
#[derive(Clone, Copy)]
pub(crate) enum RequestBody {
    /// The body is ignored.
    Ignored,
    /// An object with the fields of this schema; other fields are ignored.
    Action(SchemaOf),
    /// A document.
    Document(SchemaOf),
    /// A WebAssembly component.
    Component,
}

/// One possible answer of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) about: &'static str,
    pub(crate) content: Content,
}

/// The type of an answer's body.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// No body.
    Nothing,
    /// `text/plain`.
    Text,
    /// `application/json`.
    Json(SchemaOf),
    /// One JSON value of this schema per line, for as long as the reader stays.
    Lines(SchemaOf),
    /// Server-sent events, each with a JSON value of this schema, for as long as the reader stays.
    Events(SchemaOf),
    /// Text of this media type.
    Page(&'static str),
}

impl Answer {
    /// 200, the text `OK`.
    pub(crate) const OK: Answer = Answer::text(200, "the action is complete");
    /// 423, JSON-failed.
    pub(crate) const LOCKED: Answer =
        Answer::failed(423, "an update lock is held and `force` is not given");
    /// 401, JSON-failed.
    pub(crate) const OTHER_APP: Answer = Answer::failed(401, "the key is of another app");
    /// 503, JSON-failed.
    pub(crate) const NOT_CURRENT: Answer = Answer::failed(503, "the device does not run the app");

    pub(crate) const fn new(status: u16, about: &'static str, content: Content) -> Self {
        Answer {
            status,
            about,
            content,
        }
    }

    /// Returns a 200 with JSON.
    pub(crate) const fn json(about: &'static str, schema: SchemaOf) -> Self {
        Answer::new(200, about, Content::Json(schema))
    }

    pub(crate) const fn text(status: u16, about: &'static str) -> Self {
        Answer::new(status, about, Content::Text)
    }

    pub(crate) const fn empty(status: u16, about: &'static str) -> Self {
        Answer::new(status, about, Content::Nothing)
    }

    /// Returns an answer `{"status":"failed","message":...}`.
    pub(crate) const fn failed(status: u16, about: &'static str) -> Self {
        Answer::new(status, about, Content::Json(schema::<FailureBody>))
    }
}
