//! Reads `plugin.toml` into the same parts as the input of the macro.

use plugin_manifest::{INTERFACE, Language, ProjectFile, Spanned};
use syn::parse::Parser as _;

use crate::part::{
    AboutField, ActionLine, CapabilityLine, Content, LimitLine, Part, PartKind, RouteLine,
    ScheduleLine,
};
use crate::problems::{Place, PlacedValue, Problems};

/// What `plugin.toml` declares.
pub(crate) struct ProjectParts {
    pub(crate) name: PlacedValue<String>,
    pub(crate) version: PlacedValue<String>,
    pub(crate) parts: Vec<Part>,
}

/// Reads the text of `plugin.toml`; `None` if its form is wrong.
pub(crate) fn read(text: &str, problems: &mut Problems) -> Option<ProjectParts> {
    let file = match ProjectFile::parse(text) {
        Ok(file) => file,
        Err(error) => {
            problems.add(Place::File(error.offset), error.message);
            return None;
        }
    };
    check_build(&file, problems);
    let mut parts = Vec::new();
    for (field, text) in [
        (AboutField::Description, file.description),
        (AboutField::Vendor, file.vendor),
        (AboutField::Licence, file.licence),
        (AboutField::Homepage, file.homepage),
    ] {
        parts.extend(text.map(|text| text_part(PartKind::About(field), text)));
    }
    parts.extend(file.openapi.map(|path| text_part(PartKind::Openapi, path)));
    let capabilities = file
        .capabilities
        .into_iter()
        .map(|(name, reason)| CapabilityLine {
            name: place(&name).map(|name| name.0.to_string()),
            reason: place(&reason),
        });
    let capabilities: Vec<_> = capabilities.collect();
    let first = capabilities.first().map(|line| line.name.place);
    push(
        &mut parts,
        PartKind::Capabilities,
        first,
        Content::Capabilities(capabilities),
    );
    let routes = file.routes.into_iter();
    let routes: Vec<_> = routes
        .filter_map(|(route, handler)| route_line(&place(&route), &handler, problems))
        .collect();
    let first = routes.first().map(|line| line.method.place);
    push(&mut parts, PartKind::Routes, first, Content::Routes(routes));
    for (action, provider) in file.provides {
        if let Some(path) = path(&provider, "a function or type", problems) {
            let place = Some(Place::File(action.span().start));
            let kind = PartKind::Provides(action.into_inner());
            push(&mut parts, kind, place, Content::Provider(path));
        }
    }
    let boards: Vec<_> = file.boards.iter().map(place).collect();
    let first = boards.first().map(|board| board.place);
    push(&mut parts, PartKind::Boards, first, Content::Boards(boards));
    let events = file.events.iter();
    let events: Vec<_> = events
        .map(|kind| place(kind).map(|kind| kind.to_string()))
        .collect();
    let first = events.first().map(|kind| kind.place);
    push(&mut parts, PartKind::Events, first, Content::Events(events));
    let mut actions = Vec::new();
    for (name, function) in &file.actions {
        let function = path(function, "the function that does it", problems);
        actions.extend(function.map(|function| ActionLine {
            name: place(name),
            function,
        }));
    }
    let first = actions.first().map(|line| line.name.place);
    push(
        &mut parts,
        PartKind::Actions,
        first,
        Content::Actions(actions),
    );
    let schedules = file.schedules.iter().map(|(name, schedule)| ScheduleLine {
        name: place(name),
        schedule: place(schedule),
    });
    let schedules: Vec<_> = schedules.collect();
    let first = schedules.first().map(|line| line.name.place);
    push(
        &mut parts,
        PartKind::Schedules,
        first,
        Content::Schedules(schedules),
    );
    let limits = file.limits.iter().map(|(name, value)| LimitLine {
        name: place(name),
        value: place(value).map(u64::from),
    });
    let limits: Vec<_> = limits.collect();
    let first = limits.first().map(|line| line.name.place);
    push(&mut parts, PartKind::Limits, first, Content::Limits(limits));
    Some(ProjectParts {
        name: place(&file.name),
        version: place(&file.version).map(|version| version.to_string()),
        parts,
    })
}

/// Refuses builds that this crate does not support.
fn check_build(file: &ProjectFile, problems: &mut Problems) {
    if let Some(language) = &file.build.language
        && *language.get_ref() != Language::Rust
    {
        let message = format!(
            "`language` is `{}`, and `plugin!` is for Rust: leave `language` out",
            language.get_ref()
        );
        problems.add(Place::File(language.span().start), message);
    }
    for (key, value) in [
        ("base_path", &file.base_path),
        ("command", &file.build.command),
    ] {
        if let Some(value) = value {
            let message = format!(
                "`{key}` is for components of other toolchains, and `plugin!` is for Rust: leave `{key}` out"
            );
            problems.add(Place::File(value.span().start), message);
        }
    }
    if let Some(interface) = &file.interface
        && *interface.get_ref() != INTERFACE
    {
        let message = format!(
            "`interface` is {}, and this SDK has {INTERFACE}: leave `interface` out",
            interface.get_ref()
        );
        problems.add(Place::File(interface.span().start), message);
    }
}

/// Adds a part if it has a first line.
fn push(parts: &mut Vec<Part>, kind: PartKind, first: Option<Place>, content: Content) {
    parts.extend(first.map(|place| Part {
        kind,
        place,
        content: Some(content),
    }));
}

fn text_part(kind: PartKind, text: Spanned<String>) -> Part {
    let text = place(&text);
    Part {
        kind,
        place: text.place,
        content: Some(Content::Text(text)),
    }
}

/// Reads `"GET /v3/hello" = "hello"`.
fn route_line(
    route: &PlacedValue<String>,
    handler: &Spanned<String>,
    problems: &mut Problems,
) -> Option<RouteLine> {
    let handler = path(handler, "the function that answers", problems);
    let Some((method, path)) = route.value.split_once(' ') else {
        let message = "a route is a method and a path: `\"GET /v3/hello\" = \"hello\"`";
        problems.add(route.place, message);
        return None;
    };
    let part = |text: &str| PlacedValue {
        value: text.trim_start().to_owned(),
        place: route.place,
    };
    Some(RouteLine {
        method: part(method),
        path: part(path),
        handler: handler?,
    })
}

/// Reads a Rust path; `what` says what it is the path of.
fn path(text: &Spanned<String>, what: &str, problems: &mut Problems) -> Option<syn::Path> {
    let path = syn::Path::parse_mod_style.parse_str(text.get_ref());
    if path.is_err() {
        let message = format!("name {what} by its Rust path, for example `rails::show`");
        problems.add(Place::File(text.span().start), message);
    }
    path.ok()
}

fn place<T: Clone>(spanned: &Spanned<T>) -> PlacedValue<T> {
    PlacedValue {
        value: spanned.get_ref().clone(),
        place: Place::File(spanned.span().start),
    }
}
