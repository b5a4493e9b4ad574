//! What an operation of the API takes and gives, written beside its route: what `GET /v3/openapi.json` is
//! drawn from. Nothing here decides how a request is answered.

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Gives the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`, by reference.
pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// One operation. What all have in common, a key and how it is refused, need not be said.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) open: bool,
    pub(crate) query: &'static [Parameter],
    pub(crate) body: Body,
    pub(crate) answers: &'static [Answer],
}

/// What a request's body may contain.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// The body is ignored.
    Ignored,
    /// An object with the fields of this schema; others are not looked at.
    Action(SchemaOf),
    /// A document.
    Document(SchemaOf),
}

/// A parameter of a query: text that may be left out.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// One way in which an operation answers.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
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
    /// JSON of one shape a line, for as long as the reader stays.
    Lines(SchemaOf),
    /// Server-sent events with JSON of one shape each, for as long as the reader stays.
    Events(SchemaOf),
    /// Text of this media type.
    Page(&'static str),
}

impl Operation {
    /// An operation that answers in these ways, and takes no body.
    pub(crate) const fn answering(answers: &'static [Answer]) -> Self {
        Operation {
            open: false,
            query: &[],
            body: Body::Ignored,
            answers,
        }
    }

    /// Declares that the operation reads an object with the fields of this schema.
    pub(crate) const fn taking(mut self, schema: SchemaOf) -> Self {
        self.body = Body::Action(schema);
        self
    }

    /// Declares that the operation reads a document.
    pub(crate) const fn taking_document(mut self, schema: SchemaOf) -> Self {
        self.body = Body::Document(schema);
        self
    }

    /// Declares that the operation reads these parameters of the query.
    pub(crate) const fn asked_with(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    /// Declares that the operation needs no key.
    pub(crate) const fn without_key(mut self) -> Self {
        self.open = true;
        self
    }
}

impl Answer {
    /// 200, the text `OK`.
    pub(crate) const OK: Answer = Answer::text(StatusCode::OK, "the action is complete");
    /// 423, JSON-failed.
    pub(crate) const LOCKED: Answer = Answer::failed(
        StatusCode::LOCKED,
        "an update lock is held and `force` is not given",
    );

    pub(crate) const fn json(about: &'static str, schema: SchemaOf) -> Self {
        Answer {
            status: StatusCode::OK,
            about,
            content: Content::Json(schema),
        }
    }

    pub(crate) const fn json_with(
        status: StatusCode,
        about: &'static str,
        schema: SchemaOf,
    ) -> Self {
        Answer {
            status,
            about,
            content: Content::Json(schema),
        }
    }

    pub(crate) const fn text(status: StatusCode, about: &'static str) -> Self {
        Answer {
            status,
            about,
            content: Content::Text,
        }
    }

    pub(crate) const fn empty(status: StatusCode, about: &'static str) -> Self {
        Answer {
            status,
            about,
            content: Content::Nothing,
        }
    }

    pub(crate) const fn lines(about: &'static str, schema: SchemaOf) -> Self {
        Answer {
            status: StatusCode::OK,
            about,
            content: Content::Lines(schema),
        }
    }

    pub(crate) const fn events(about: &'static str, schema: SchemaOf) -> Self {
        Answer {
            status: StatusCode::OK,
            about,
            content: Content::Events(schema),
        }
    }

    pub(crate) const fn page(about: &'static str, media: &'static str) -> Self {
        Answer {
            status: StatusCode::OK,
            about,
            content: Content::Page(media),
        }
    }

    /// `{"status":"failed","message":...}`.
    pub(crate) const fn failed(status: StatusCode, about: &'static str) -> Self {
        Answer {
            status,
            about,
            content: Content::Json(schema::<crate::answer::FailureBody>),
        }
    }
}
