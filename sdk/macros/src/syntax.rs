//! Reads the input of the macro. If something cannot be read, it is skipped up to the beginning of the next part or
//! line, so that one mistake does not hide the others.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Ident, LitInt, LitStr, Token, token};

use crate::part::{
    ActionLine, CapabilityLine, Content, LimitLine, Part, PartKind, RouteLine, ScheduleLine,
};
use crate::problems::{Place, PlacedValue, Problems};

/// The input of the macro, without the parts that could not be read.
pub(crate) struct MacroInput {
    pub(crate) parts: Vec<Part>,
    /// Whether the input was read to its end.
    pub(crate) is_complete: bool,
}

/// A name, in which `-` and `_` are the same.
struct Name {
    /// The name, with `_` for `-`.
    text: String,
    span: Span,
}

pub(crate) fn parse(tokens: TokenStream, problems: &mut Problems) -> MacroInput {
    let mut parts = Vec::new();
    let outcome = (|input: ParseStream| {
        while !input.is_empty() {
            part(input, &mut parts, problems)?;
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    })
    .parse2(tokens);
    let is_complete = outcome.is_ok();
    if let Err(error) = outcome {
        problems.add_error(error);
    }
    MacroInput { parts, is_complete }
}

/// Reads one part into `parts`.
///
/// # Errors
/// If the next token does not begin a part: then nothing after it can be understood.
fn part(input: ParseStream, parts: &mut Vec<Part>, problems: &mut Problems) -> syn::Result<()> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("expected one of {}", PartKind::list())));
    }
    let name = name(input)?;
    let Some(kind) = PartKind::find(&name.text) else {
        let text = &name.text;
        let list = PartKind::list();
        problems.add_error(name.error(format!("there is no part `{text}`: use {list}")));
        skip_value(input)?;
        return Ok(());
    };
    let content = match separator(input, kind, problems) {
        Ok(()) => content(input, kind, problems),
        Err(error) => Err(error),
    };
    let content = match content {
        Ok(content) => Some(content),
        Err(error) => {
            problems.add_error(error);
            skip_value(input)?;
            None
        }
    };
    let place = Place::Macro(name.span);
    if parts.iter().any(|other| other.kind == kind) {
        let text = &name.text;
        problems.add(
            place,
            format!("`{text}` is here a second time: make one part of both"),
        );
    } else {
        parts.push(Part {
            kind,
            place,
            content,
        });
    }
    Ok(())
}

/// Reads `:` or `=>`, whichever the part has.
fn separator(input: ParseStream, kind: PartKind, problems: &mut Problems) -> syn::Result<()> {
    let message = || format!("write `{}`", kind.example());
    let is_arrow = matches!(kind, PartKind::Provides(_));
    let span = input.span();
    if input.peek(Token![=>]) {
        input.parse::<Token![=>]>()?;
        if !is_arrow {
            problems.add(Place::Macro(span), message());
        }
        return Ok(());
    }
    if input.peek(Token![:]) && !input.peek(Token![::]) {
        input.parse::<Token![:]>()?;
        if is_arrow {
            problems.add(Place::Macro(span), message());
        }
        return Ok(());
    }
    Err(input.error(message()))
}

fn content(input: ParseStream, kind: PartKind, problems: &mut Problems) -> syn::Result<Content> {
    Ok(match kind {
        PartKind::Capabilities => Content::Capabilities(lines(input, kind, problems, capability)?),
        PartKind::Routes => Content::Routes(lines(input, kind, problems, route)?),
        PartKind::Limits => Content::Limits(lines(input, kind, problems, limit)?),
        PartKind::Actions => Content::Actions(lines(input, kind, problems, action)?),
        PartKind::Schedules => Content::Schedules(lines(input, kind, problems, schedule)?),
        PartKind::Provides(_) => Content::Provider(path(input, kind)?),
        PartKind::Openapi | PartKind::About(_) => Content::Text(text(input, || {
            format!("write a text in quotes: `{}`", kind.example())
        })?),
        PartKind::Boards => Content::Boards(texts(input, kind, problems)?),
        PartKind::Events => Content::Events(texts(input, kind, problems)?),
    })
}

/// Reads a list of texts in brackets.
fn texts(
    input: ParseStream,
    kind: PartKind,
    problems: &mut Problems,
) -> syn::Result<Vec<PlacedValue<String>>> {
    let example = kind.example();
    if !input.peek(token::Bracket) {
        return Err(input.error(format!("write a list: `{example}`")));
    }
    let content;
    syn::bracketed!(content in input);
    Ok(all(&content, problems, |line| {
        text(line, || format!("write texts in quotes: `{example}`"))
    }))
}

/// Reads lines in braces.
fn lines<T>(
    input: ParseStream,
    kind: PartKind,
    problems: &mut Problems,
    line: fn(ParseStream) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    if !input.peek(token::Brace) {
        return Err(input.error(format!("write it in braces: `{}`", kind.example())));
    }
    let content;
    syn::braced!(content in input);
    Ok(all(&content, problems, line))
}

/// Reads one `line` after the other; if one cannot be read, continues after the next comma.
fn all<T>(
    input: ParseStream,
    problems: &mut Problems,
    line: impl Fn(ParseStream) -> syn::Result<T>,
) -> Vec<T> {
    let mut lines = Vec::new();
    while !input.is_empty() {
        match line(input) {
            Ok(line) => lines.push(line),
            Err(error) => {
                problems.add_error(error);
                while !input.is_empty() && !input.peek(Token![,]) {
                    let _ = input.parse::<TokenTree>();
                }
            }
        }
        let _ = input.parse::<Option<Token![,]>>();
    }
    lines
}

fn capability(input: ParseStream) -> syn::Result<CapabilityLine> {
    if !input.peek(Ident::peek_any) {
        return Err(
            input.error("write a capability and its reason: `store => \"why it is needed\"`")
        );
    }
    let name = name(input)?;
    let example = format!("{} => \"why it is needed\"", name.text);
    if !input.peek(Token![=>]) {
        return Err(name.error(format!("say why it is needed: `{example}`")));
    }
    input.parse::<Token![=>]>()?;
    let reason = text(input, || format!("write the reason in quotes: `{example}`"))?;
    Ok(CapabilityLine {
        name: name.into_value(),
        reason,
    })
}

fn schedule(input: ParseStream) -> syn::Result<ScheduleLine> {
    let example = PartKind::Schedules.example();
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("write a name and its times: `{example}`")));
    }
    let name = name(input)?;
    if !input.peek(Token![=>]) {
        return Err(name.error(format!("say when it is due: `{example}`")));
    }
    input.parse::<Token![=>]>()?;
    let schedule = text(input, || format!("write the times in quotes: `{example}`"))?;
    let mut name = name.into_value();
    name.value = name.value.replace('_', "-");
    Ok(ScheduleLine { name, schedule })
}

fn action(input: ParseStream) -> syn::Result<ActionLine> {
    let example = PartKind::Actions.example();
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("write a name and a function: `{example}`")));
    }
    let name = name(input)?;
    if !input.peek(Token![=>]) {
        return Err(name.error(format!("say which function does it: `{example}`")));
    }
    input.parse::<Token![=>]>()?;
    let function = path(input, PartKind::Actions)?;
    let mut name = name.into_value();
    name.value = name.value.replace('_', "-");
    Ok(ActionLine { name, function })
}

fn route(input: ParseStream) -> syn::Result<RouteLine> {
    let example = PartKind::Routes.example();
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("begin a route with its method: `{example}`")));
    }
    let method = input.call(Ident::parse_any)?;
    let method = PlacedValue {
        value: method.to_string(),
        place: Place::Macro(method.span()),
    };
    let path = text(input, || {
        format!("write the route's path in quotes: `{example}`")
    })?;
    if !input.peek(Token![=>]) {
        return Err(input.error(format!("say which function answers: `{example}`")));
    }
    input.parse::<Token![=>]>()?;
    Ok(RouteLine {
        method,
        path,
        handler: self::path(input, PartKind::Routes)?,
    })
}

fn limit(input: ParseStream) -> syn::Result<LimitLine> {
    let example = PartKind::Limits.example();
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!("write a limit and its value: `{example}`")));
    }
    let name = name(input)?;
    if !input.peek(Token![:]) {
        return Err(name.error(format!("write a limit and its value: `{example}`")));
    }
    input.parse::<Token![:]>()?;
    if !input.peek(LitInt) {
        return Err(input.error(format!("a limit is a whole number: `{example}`")));
    }
    let value: LitInt = input.parse()?;
    Ok(LimitLine {
        name: name.into_value(),
        value: PlacedValue {
            // A value that does not fit is above every limit.
            value: value.base10_parse().unwrap_or(u64::MAX),
            place: Place::Macro(value.span()),
        },
    })
}

fn text(input: ParseStream, message: impl Fn() -> String) -> syn::Result<PlacedValue<String>> {
    if !input.peek(LitStr) {
        return Err(input.error(message()));
    }
    let text: LitStr = input.parse()?;
    Ok(PlacedValue {
        value: text.value(),
        place: Place::Macro(text.span()),
    })
}

/// Reads the path of a function or type.
fn path(input: ParseStream, kind: PartKind) -> syn::Result<syn::Path> {
    let span = input.span();
    input
        .call(syn::Path::parse_mod_style)
        .map_err(|_| syn::Error::new(span, format!("write a path: `{}`", kind.example())))
}

fn name(input: ParseStream) -> syn::Result<Name> {
    let first = input.call(Ident::parse_any)?;
    let mut text = first.to_string();
    while input.peek(Token![-]) && input.peek2(Ident::peek_any) {
        input.parse::<Token![-]>()?;
        text.push('_');
        text.push_str(&input.call(Ident::parse_any)?.to_string());
    }
    Ok(Name {
        text,
        span: first.span(),
    })
}

impl Name {
    fn error(&self, message: String) -> syn::Error {
        syn::Error::new(self.span, message)
    }

    fn into_value(self) -> PlacedValue<String> {
        PlacedValue {
            value: self.text,
            place: Place::Macro(self.span),
        }
    }
}

/// Skips the rest of a part after its name, up to a comma or the next part.
fn skip_value(input: ParseStream) -> syn::Result<()> {
    let begins_part = |input: ParseStream| {
        let is_colon = input.peek2(Token![:]) && !input.peek2(Token![::]);
        let is_separator = is_colon || input.peek2(Token![=>]) || input.peek2(Token![-]);
        input.peek(Ident::peek_any) && is_separator
    };
    while !input.is_empty() && !input.peek(Token![,]) && !begins_part(input) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
