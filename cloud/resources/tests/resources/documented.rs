//! The tables of docs/cloud-api.md match the declarations. `UPDATE_DOCS=1` writes them into the
//! page.

use std::fmt::Write as _;
use std::path::PathBuf;
use strum::VariantArray;

use resources::{
    Action, Branding, Column, Constant, Default, Field, Method, Model, OnDelete, Resource, Role,
    Source, Step, Type, Version, Writer, v7,
};

#[test]
fn the_tables_of_the_page_are_what_is_declared() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/cloud-api.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let mut written = text.clone();
    for (part, table) in [
        ("resources", resources()),
        ("access", access()),
        ("actions", actions()),
        ("versions", versions()),
    ] {
        written = replaced(&written, part, &table);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, written).expect("the page is written");
        return;
    }
    let differs = text
        .lines()
        .zip(written.lines())
        .find(|(is, was)| is != was);
    assert!(
        text == written,
        "docs/cloud-api.md is not what is declared (UPDATE_DOCS=1 rewrites it): {differs:?}"
    );
}

/// Returns the page with new text between the marks of a part.
fn replaced(page: &str, part: &str, table: &str) -> String {
    let (begin, end) = (
        format!("<!-- {part} -->\n"),
        format!("<!-- end of {part} -->"),
    );
    let (before, rest) = page.split_once(&begin).expect("the part begins");
    let (_, after) = rest.split_once(&end).expect("the part ends");
    format!("{before}{begin}\n{table}\n{end}{after}")
}

fn resources() -> String {
    let mut all: Vec<&Resource> = v7().resources().iter().collect();
    all.sort_by_key(|it| it.name);
    let mut text = String::new();
    for resource in all {
        let _ = writeln!(text, "### {}\n", resource.name);
        let _ = writeln!(text, "{}\n", about(resource));
        if shown(resource).next().is_some() {
            text.push_str("| field | holds | written by | |\n|---|---|---|---|\n");
        }
        for field in shown(resource) {
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                field.name,
                holds(field),
                writer(field),
                field.doc
            );
        }
        let links = links(resource);
        if !links.is_empty() {
            let gap = if shown(resource).next().is_some() {
                "\n"
            } else {
                ""
            };
            let _ = writeln!(text, "{gap}Leads to {links}.");
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the fields except those that every stored resource has.
fn shown(resource: &Resource) -> impl Iterator<Item = &Field> {
    let common = match resource.source {
        Source::Table => 3,
        Source::View(_) => 0,
    };
    resource.fields.iter().skip(common).filter(|it| !it.secret)
}

fn about(resource: &Resource) -> String {
    let mut text = format!("{}.", sentence(resource.doc));
    if !resource.synonyms.is_empty() {
        let _ = write!(text, " Also called {}.", codes(&resource.synonyms));
    }
    let keys = resource.unique.iter();
    let keys = keys.filter(|set| {
        let mut fields = set.iter().filter_map(|name| resource.find_field(name));
        fields.all(|field| !field.secret)
    });
    let keys: Vec<String> = keys.map(|set| format!("`({})`", set.join(","))).collect();
    if !keys.is_empty() {
        let _ = write!(text, " Also addressed by {}.", keys.join(", "));
    }
    text
}

fn sentence(doc: &str) -> String {
    let mut letters = doc.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn codes(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn holds(field: &Field) -> String {
    let branding = Branding::default();
    match field.column {
        Column::Constant(Constant::Null) => return "always null".to_owned(),
        Column::Constant(Constant::Boolean(is)) => return format!("always {is}"),
        Column::Stored(_) | Column::Computed(_) => {}
    }
    let mut text = match field.kind {
        Type::Integer => "whole number".to_owned(),
        Type::BigInteger => "whole number, which reads as text".to_owned(),
        Type::Boolean => "true or false".to_owned(),
        Type::Text { min, max } => {
            let what = match field.check {
                Some(check) => check.requirement(&branding),
                None => "text".to_owned(),
            };
            match min {
                0 => format!("{what}, at most {max} characters"),
                _ if min == max => what,
                _ => format!("{what}, {min} to {max} characters"),
            }
        }
        Type::Word(words) => codes(words),
        Type::Timestamp => "time".to_owned(),
        Type::Json { max } => format!("object or array, at most {max} bytes"),
        Type::JsonText { max } => format!("text of an object or array, at most {max} bytes"),
        Type::Link { to, on_delete } => {
            let then = match on_delete {
                OnDelete::Cascade => ", deleted with it",
                OnDelete::SetNull => ", null when that is deleted",
                OnDelete::Refuse if field.owns => "",
                OnDelete::Refuse => ", which then cannot be deleted",
                OnDelete::Ignore => "",
            };
            format!("link to `{to}`{then}")
        }
    };
    if field.nullable {
        text.push_str("; or null");
    }
    match field.default {
        Default::None => {}
        Default::Text(word) => {
            let _ = write!(text, "; `\"{word}\"` by default");
        }
        Default::Integer(number) => {
            let _ = write!(text, "; {number} by default");
        }
        Default::Boolean(is) => {
            let _ = write!(text, "; {is} by default");
        }
        Default::Now => text.push_str("; the time of the request by default"),
        Default::Uuid => text.push_str("; random by default"),
    }
    text
}

fn writer(field: &Field) -> &'static str {
    match (field.column, field.writer) {
        (_, Writer::Input) => "clients",
        (Column::Computed(_), _) => "nobody: computed",
        (Column::Constant(_), _) => "nobody",
        (_, Writer::Client) if field.required => "clients; required",
        (_, Writer::People) if field.required => "people; required",
        (_, Writer::People) => "people",
        (_, Writer::Provisioning) => "people; a device until its first poll",
        (_, Writer::Client) => "clients",
        (_, Writer::Creator) => "clients, once",
        (_, Writer::Device) => "devices",
        (_, Writer::Platform) => "the platform",
    }
}

/// Returns the navigations of a row other than its own links by their own names.
fn links(resource: &Resource) -> String {
    let named = resource.navigations.iter();
    let named = named.filter(|it| it.step != Step::One(it.name));
    let named = named.map(|it| match (it.name == it.to, it.step) {
        (true, _) => format!("`{}`", it.name),
        (false, Step::One(field)) => format!("`{}` (as `{field}`)", it.name),
        (false, _) => format!("`{}` (`{}`)", it.name, it.to),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn access() -> String {
    let mut text = String::from(
        "| resource | guest | user | named key | provisioning key | device key | tunnel server |\n|---|---|---|---|---|---|---|\n",
    );
    for resource in v7().resources() {
        let cells: Vec<_> = Role::VARIANTS
            .iter()
            .map(|role| letters(resource, *role))
            .collect();
        let _ = writeln!(text, "| {} | {} |", resource.name, cells.join(" | "));
    }
    text
}

fn letters(resource: &Resource, role: Role) -> String {
    [
        (Method::Read, 'R'),
        (Method::Create, 'C'),
        (Method::Update, 'U'),
        (Method::Delete, 'D'),
    ]
    .into_iter()
    .filter(|(method, _)| {
        let mut grants = resource.grants.iter();
        grants.any(|it| it.role == role && it.methods.has(*method))
    })
    .map(|(_, letter)| letter)
    .collect()
}

fn actions() -> String {
    let mut text = String::from("| action | on | by |\n|---|---|---|\n");
    for action in Action::VARIANTS {
        for resource in v7().resources() {
            let permits = resource.permits.iter().filter(|it| it.action == *action);
            // A role has several permits if it may act on rows for different reasons.
            let mut roles: Vec<&str> = Vec::new();
            for permit in permits {
                let role: &str = permit.role.into();
                if !roles.contains(&role) {
                    roles.push(role);
                }
            }
            if !roles.is_empty() {
                let _ = writeln!(
                    text,
                    "| {action} | {} | {} |",
                    resource.name,
                    roles.join(", ")
                );
            }
        }
    }
    text
}

fn versions() -> String {
    let mut text = String::new();
    for (name, older, newer) in [
        ("v6 against v7", Version::V6, Version::V7),
        ("v5, and v1 to v4, against v6", Version::V5, Version::V6),
    ] {
        let _ = writeln!(text, "| {name} | |\n|---|---|");
        for (what, how) in differences(older.model(), newer.model()) {
            let _ = writeln!(text, "| `{what}` | {how} |");
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the differences of an older version: the name, and its state there.
fn differences(older: &Model, newer: &Model) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for resource in newer.resources() {
        let Some(then) = older.resource(resource.name) else {
            found.push((resource.name.to_owned(), "does not exist".to_owned()));
            continue;
        };
        for field in resource.fields.iter().filter(|it| !it.secret) {
            if then.find_field(field.name).is_none() {
                let named = then.fields.iter().find(|it| it.column == field.column);
                let how = named.map_or("does not exist".to_owned(), |it| {
                    format!("called `{}`", it.name)
                });
                found.push((format!("{}.{}", resource.name, field.name), how));
            }
        }
    }
    for resource in older.resources() {
        // Differences of a selection are listed with the resource whose rows it has.
        let known = newer.resource(resource.name).is_some();
        if resource.only.is_some() && known {
            continue;
        }
        let Some(now) = newer.resource(resource.name) else {
            found.push((resource.name.to_owned(), resource.doc.to_owned()));
            continue;
        };
        for synonym in resource
            .synonyms
            .iter()
            .filter(|it| !now.synonyms.contains(it))
        {
            found.push((
                (*synonym).to_owned(),
                format!("another name of `{}`", resource.name),
            ));
        }
        for field in &resource.fields {
            let same = now.find_field(field.name);
            if let Some(how) = otherwise(field, same, now) {
                found.push((format!("{}.{}", resource.name, field.name), how));
            }
        }
        for one in &resource.navigations {
            if now.find_navigation(one.name).is_none() && one.step != Step::One(one.name) {
                found.push((
                    format!("{}.{}", resource.name, one.name),
                    format!("leads to `{}`", one.to),
                ));
            }
        }
    }
    found
}

/// Describes a field of the older version, if it differs from the newer one.
fn otherwise(field: &Field, newer: Option<&Field>, resource: &Resource) -> Option<String> {
    let same = newer.is_some_and(|newer| {
        newer.column == field.column && newer.kind == field.kind && newer.secret == field.secret
    });
    if same {
        return None;
    }
    Some(match field.column {
        Column::Constant(Constant::Null) => "always null".to_owned(),
        _ if field.secret => format!("written only: {}", field.doc),
        Column::Stored(column) if column != field.name => {
            let now = resource.fields.iter().find(|it| it.column == field.column);
            let now = now.map_or(column, |it| it.name);
            format!("what `{now}` is today")
        }
        _ if newer.is_some_and(|newer| newer.kind != field.kind) => holds(field),
        _ if newer.is_some_and(|newer| newer.column != field.column) => {
            "computed differently".to_owned()
        }
        _ => field.doc.to_owned(),
    })
}
