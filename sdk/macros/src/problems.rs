//! Places in an author's declaration, and the errors about them.

use std::fmt::Display;

use plugin_manifest::line_and_column;
use proc_macro2::Span;

/// A place in a declaration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// In the input of the macro.
    Macro(Span),
    /// In `plugin.toml`, at this byte.
    File(usize),
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct PlacedValue<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T> PlacedValue<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> PlacedValue<U> {
        PlacedValue {
            value: change(self.value),
            place: self.place,
        }
    }
}

/// Collects all errors, so that an author sees them together.
pub(crate) struct Problems<'a> {
    error: Option<syn::Error>,
    /// The text of `plugin.toml`, for counting lines and columns.
    project: &'a str,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(project: &'a str) -> Self {
        Self {
            error: None,
            project,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.error.is_none()
    }

    /// Adds an error about the text at `place`. The compiler shows only source files, so the place in
    /// `plugin.toml` is part of the message.
    pub(crate) fn add(&mut self, place: Place, message: impl Display) {
        self.add_error(match place {
            Place::Macro(span) => syn::Error::new(span, message),
            Place::File(offset) => {
                let (line, column) = self.line_and_column(offset);
                let message = format!("plugin.toml:{line}:{column}: {message}");
                syn::Error::new(Span::call_site(), message)
            }
        });
    }

    /// Adds an error about the whole declaration.
    pub(crate) fn add_general(&mut self, message: impl Display) {
        self.add(Place::Macro(Span::call_site()), message);
    }

    pub(crate) fn add_error(&mut self, error: syn::Error) {
        match &mut self.error {
            Some(first) => first.combine(error),
            None => self.error = Some(error),
        }
    }

    /// # Errors
    /// All errors, if there are any.
    pub(crate) fn into_result(self) -> syn::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// Returns line and column, counted from 1 and in characters, as editors do.
    pub(crate) fn line_and_column(&self, offset: usize) -> (usize, usize) {
        line_and_column(self.project, offset)
    }
}
