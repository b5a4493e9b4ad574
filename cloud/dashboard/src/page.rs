//! The layout of a page.

use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPTS, STYLE, THEME};
use super::session_user::SessionUser;

/// Nothing in a page is run as a program, no copies of pages are kept, and refusals are shown where they belong.
const HTMX: &str = r#"{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true,"responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"[45]..","swap":true,"error":true}]}"#;

/// The first page of the fleets section.
const FLEETS: &str = "/dashboard";
/// The first page of the account section.
pub(crate) const ACCOUNT: &str = "/dashboard/account";

/// The part of the dashboard that a page belongs to, as its menu shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Fleets,
    Account,
}

impl Section {
    /// Returns its name, and the address of its first page.
    const fn first_page(self) -> (&'static str, &'static str) {
        match self {
            Section::Fleets => ("Fleets", FLEETS),
            Section::Account => ("Account", ACCOUNT),
        }
    }
}

/// A page for somebody who is signed in.
pub(crate) struct Page {
    pub(crate) section: Section,
    /// The title of the window; not trusted, like all names that people choose.
    pub(crate) title: String,
    /// The pages above this one: their names and addresses.
    pub(crate) above: Vec<(String, String)>,
    /// The address of the events of its parts ([`super::live`]).
    pub(crate) live: Option<String>,
    pub(crate) main: Markup,
}

impl Page {
    /// The first page of a section.
    pub(crate) fn first(section: Section, live: String, main: Markup) -> Self {
        Page {
            section,
            title: section.first_page().0.to_owned(),
            above: Vec::new(),
            live: Some(live),
            main,
        }
    }

    /// A page below the first one of its section.
    pub(crate) fn below(section: Section, title: &str, main: Markup) -> Self {
        let (name, place) = section.first_page();
        Page {
            section,
            title: title.to_owned(),
            above: vec![(name.to_owned(), place.to_owned())],
            live: None,
            main,
        }
    }

    /// Renders the whole page for this user.
    pub(crate) fn markup(&self, user: &SessionUser) -> Markup {
        let menu = [Section::Fleets, Section::Account];
        let header = html! {
            nav.menu aria-label="Main" {
                @for (section, (name, place)) in menu.map(|section| (section, section.first_page())) {
                    a href=(place) aria-current=[(section == self.section).then_some("true")] { (name) }
                }
            }
            form.who method="post" action="/dashboard/sign-out" {
                span.name { (user.name) }
                button.quiet type="submit" { "Sign out" }
            }
        };
        let main = html! {
            @if !self.above.is_empty() {
                nav.above aria-label="Breadcrumbs" {
                    ol { @for (name, place) in &self.above { li { a href=(place) { (name) } } } }
                }
            }
            (self.main)
        };
        whole(&self.title, &header, &main, self.live.as_deref())
    }
}

/// A page for anybody.
pub(crate) fn bare(title: &str, main: Markup) -> Markup {
    whole(title, &html! {}, &html! { div.narrow { (main) } }, None)
}

fn whole(title: &str, header: &Markup, main: &Markup, live: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                title { (title) " · Fleet cloud" }
                link rel="icon" type="image/svg+xml" href=(ICON.address());
                link rel="stylesheet" href=(STYLE.address());
                script src=(THEME.address()) {}
                @for script in &SCRIPTS { script src=(script.address()) defer {} }
            }
            body data-live=[live] {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    a.brand href="/dashboard" {
                        img src=(ICON.address()) alt="" width="24" height="24";
                        span { "Fleet cloud" }
                    }
                    (header)
                    button.quiet.theme type="button" data-theme-switch hidden { "Dark" }
                }
                p.connection role="status" hidden { "The connection was lost. Trying again …" }
                main id="main" tabindex="-1" { (main) }
            }
        }
    }
}
