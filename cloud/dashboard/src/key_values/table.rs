//! The display and the editors of names with values.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use maud::{Markup, html};

use super::kind::{KeyValue, KeyValueKind};
use crate::live::LiveFragment;

/// Names with values in a table that can be edited.
pub(crate) struct KeyValueTable<'a> {
    /// Its name as a part of the page.
    pub(crate) part: &'static str,
    /// Its caption, for people.
    pub(crate) caption: &'a str,
    /// The text that is shown if it is empty.
    pub(crate) empty: &'a str,
    /// The address of its page.
    pub(crate) back: &'a str,
    pub(crate) rows: Vec<KeyValueRow>,
}

/// A row of the table.
pub(crate) struct KeyValueRow {
    pub(crate) kind: KeyValueKind,
    pub(crate) pair: KeyValue,
    /// The owner's service that it is for; `None` if there is nothing to distinguish.
    pub(crate) service: Option<String>,
    /// Set if the row comes from the fleet, and is not the owner's own.
    pub(crate) inherited: Option<Inheritance>,
}

impl KeyValueRow {
    /// Returns rows for the owner's own pairs, which are not for a single service.
    pub(crate) fn own(kind: KeyValueKind, pairs: Vec<KeyValue>) -> impl Iterator<Item = Self> {
        pairs.into_iter().map(move |pair| KeyValueRow {
            kind,
            pair,
            service: None,
            inherited: None,
        })
    }
}

/// A row that is inherited from the fleet.
pub(crate) struct Inheritance {
    /// The owner of the new pair if somebody sets another value here.
    pub(crate) to: (KeyValueKind, i64),
    /// The owner has its own value, which takes precedence.
    pub(crate) overridden: bool,
}

impl KeyValueTable<'_> {
    pub(crate) fn fragment(&self) -> LiveFragment {
        LiveFragment::new(self.part, self.markup())
    }

    fn markup(&self) -> Markup {
        let services = self.rows.iter().any(|row| row.service.is_some());
        let sources = self.rows.iter().any(|row| row.inherited.is_some());
        html! {
            @if self.rows.is_empty() {
                p.empty { (self.empty) }
            } @else {
                table.rows {
                    caption.hidden { (self.caption) }
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "Value" }
                        @if services { th scope="col" { "Service" } }
                        @if sources { th scope="col" { "From" } }
                        th scope="col" { span.hidden { "Change" } }
                    } }
                    tbody { @for row in &self.rows { (self.row(row, services, sources)) } }
                }
            }
        }
    }

    fn row(&self, row: &KeyValueRow, services: bool, sources: bool) -> Markup {
        let resource = row.kind.resource();
        let overridden = row.inherited.as_ref().is_some_and(|it| it.overridden);
        html! {
            tr id={ (resource) "-" (row.pair.id) } {
                th scope="row" { code { (row.pair.name) } }
                td data-label="Value" {
                    @match row.pair.value.as_deref() {
                        None if row.pair.is_secret => span.none { "Secret" },
                        None => span.none { "Hidden" },
                        Some("") => span.none { "Empty" },
                        Some(value) => code.value { (value) },
                    }
                }
                @if services { td data-label="Service" { (row.service.as_deref().unwrap_or("All")) } }
                @if sources {
                    td data-label="From" {
                        @match &row.inherited {
                            None => "Here",
                            Some(_) => {
                                "The fleet"
                                @if overridden { span.under { "Overridden here" } }
                            }
                        }
                    }
                }
                td.edit { @if !overridden { (self.editor(row)) } }
            }
        }
    }

    fn editor(&self, row: &KeyValueRow) -> Markup {
        let resource = row.kind.resource();
        let pair = &row.pair;
        let (word, place) = match &row.inherited {
            None => ("Edit", format!("/dashboard/pairs/{resource}/{}", pair.id)),
            Some(_) => ("Override", "/dashboard/pairs".to_owned()),
        };
        // Another value creates another editor: an open one does not show the previous value.
        let hash = BuildHasherDefault::<DefaultHasher>::default()
            .hash_one(pair.value.as_deref().unwrap_or_default());
        let id = format!("{resource}-{}-{hash:x}", pair.id);
        html! {
            details id={ "edit-" (id) } {
                summary { (word) span.hidden { " " (pair.name) } }
                form.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop" {
                    input type="hidden" name="back" value=(self.back);
                    @if let Some(inherited) = &row.inherited {
                        input type="hidden" name="to" value={ (inherited.to.0.resource()) " " (inherited.to.1) };
                        input type="hidden" name="name" value=(pair.name);
                    }
                    @if pair.is_secret {
                        label { "New value of " (pair.name)
                            input name="value" required autocomplete="off" spellcheck="false" id={ "value-" (id) };
                        }
                        @if row.inherited.is_some() { input type="hidden" name="secret" value="yes"; }
                    } @else {
                        label { "Value of " (pair.name)
                            input name="value" value=[pair.value.as_deref()] autocomplete="off" spellcheck="false" id={ "value-" (id) };
                        }
                        @if row.kind.may_be_secret() { (secret(&format!("secret-{id}"))) }
                    }
                    div.answer role="status" id={ "answer-" (id) } data-keep {}
                    div.buttons {
                        button.small.primary type="submit" { "Save" span.hidden { " " (pair.name) } }
                        @if row.inherited.is_none() {
                            button.small.danger type="submit" name="delete" value="yes" formnovalidate {
                                "Delete" span.hidden { " " (pair.name) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The checkbox that makes a value secret, readable only by the devices that receive it.
fn secret(id: &str) -> Markup {
    html! {
        label.tick { input type="checkbox" name="secret" value="yes" id=(id); "Secret: only devices can read it" }
    }
}

/// A form that adds to the contents of a [`KeyValueTable`]. It is next to the table, outside of the live part.
pub(crate) struct AddForm<'a> {
    /// The address of its page.
    pub(crate) back: &'a str,
    /// The possible owners of the new pair, and what people call them. The first is the default.
    pub(crate) choices: Vec<(KeyValueKind, i64, String)>,
}

impl<'a> AddForm<'a> {
    /// Creates a form for one owner, with the name that people use for the pairs.
    pub(super) fn new(back: &'a str, kind: KeyValueKind, owner: i64, name: &str) -> Self {
        AddForm {
            back,
            choices: vec![(kind, owner, name.to_owned())],
        }
    }

    fn markup(&self) -> Markup {
        let first = self.choices.first();
        let word = first.map_or("variable", |(kind, ..)| kind.word());
        let may_be_secret = first.is_some_and(|(kind, ..)| kind.may_be_secret());
        html! {
            form.line.add-form method="post" action="/dashboard/pairs" hx-post="/dashboard/pairs" hx-target="next .answer"
                hx-sync="this:drop" data-reset {
                input type="hidden" name="back" value=(self.back);
                label { "Name of the new " (word)
                    input name="name" required maxlength="255" autocomplete="off" autocapitalize="none" spellcheck="false";
                }
                label { "Value" input name="value" autocomplete="off" spellcheck="false"; }
                @match self.choices.as_slice() {
                    [(kind, owner, _)] => {
                        input type="hidden" name="to" value={ (kind.resource()) " " (owner) };
                    }
                    choices => {
                        label { "For"
                            select name="to" {
                                @for (kind, owner, name) in choices {
                                    option value={ (kind.resource()) " " (owner) } { (name) }
                                }
                            }
                        }
                    }
                }
                @if may_be_secret { (secret(&format!("secret-new-{word}"))) }
                button type="submit" { "Add " (word) }
            }
            div.answer role="status" {}
        }
    }
}

/// The section of a page with a table, and below it the form that adds to it, if the user may do so.
pub(crate) fn section(
    title: &str,
    about: Option<&Markup>,
    table: &LiveFragment,
    add: Option<&AddForm>,
) -> Markup {
    html! {
        section.stack aria-labelledby=(table.name) {
            h2 id=(table.name) { (title) }
            @if let Some(about) = about { p.faint { (about) } }
            (table.placed())
            @if let Some(add) = add { (add.markup()) }
        }
    }
}
