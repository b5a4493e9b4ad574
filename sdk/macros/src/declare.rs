//! Combines the declarations of the macro's input and `plugin.toml`.

use plugin_manifest::Project;
use proc_macro2::TokenStream;
use syn::Error;

use crate::check::{CheckedPlugin, Identity, check};
use crate::package::Package;
use crate::part::{Content, Part, PartKind};
use crate::problems::{Place, Problems};
use crate::project::{self, ProjectParts};
use crate::syntax::{self, MacroInput};

/// A declaration, whether or not a device would accept it.
pub(crate) struct Declaration {
    pub(crate) outcome: Result<ValidPlugin, Error>,
    /// The functions and types that the macro's input names. They count as used even if something else is wrong, so
    /// the compiler does not warn about them.
    pub(crate) functions: Vec<syn::Path>,
    pub(crate) types: Vec<syn::Path>,
    /// Whether the crate has a `plugin.toml`.
    pub(crate) has_project: bool,
}

/// A plugin that every device accepts.
pub(crate) struct ValidPlugin {
    pub(crate) plugin: CheckedPlugin,
    /// The text of its manifest.
    pub(crate) manifest: String,
}

impl Declaration {
    pub(crate) fn read(input: TokenStream, package: &Package) -> Declaration {
        let (text, failure) = match package.read_project() {
            Ok(text) => (text, None),
            Err(message) => (None, Some(message)),
        };
        let mut problems = Problems::new(text.as_deref().unwrap_or_default());
        let input = syntax::parse(input, &mut problems);
        let (functions, types) = paths(&input.parts);
        // `None` if there is a file but it cannot be read: then name, version and other parts are not known.
        let project_file = match (failure, text.as_deref()) {
            (Some(message), _) => {
                problems.add_general(message);
                None
            }
            (None, Some(text)) => project::read(text, &mut problems).map(Some),
            (None, None) => Some(None),
        };
        let plugin = project_file.map(|project| make(input, project, package, &mut problems));
        Declaration {
            outcome: finish(plugin, problems),
            functions,
            types,
            has_project: text.is_some(),
        }
    }
}

/// Creates one plugin from both declarations.
fn make(
    input: MacroInput,
    project: Option<ProjectParts>,
    package: &Package,
    problems: &mut Problems,
) -> CheckedPlugin {
    let identity = Identity::new(project.as_ref(), package, problems);
    let mut parts = project.map(|project| project.parts).unwrap_or_default();
    for part in input.parts {
        match parts.iter().find(|other| other.kind == part.kind) {
            Some(other) => {
                let name = part.kind.name();
                let line = match other.place {
                    Place::File(offset) => problems.line_and_column(offset).0,
                    Place::Macro(_) => 0,
                };
                let message = format!(
                    "`{name}` is in {} too, in line {line}: leave it out in one of them",
                    Project::FILE
                );
                problems.add(part.place, message);
            }
            None => parts.push(part),
        }
    }
    let answers = parts.iter().any(|part| match &part.content {
        Some(Content::Routes(lines)) => !lines.is_empty() || !problems.is_empty(),
        _ => matches!(
            part.kind,
            PartKind::Routes | PartKind::Provides(_) | PartKind::Actions
        ),
    });
    if input.is_complete && !answers {
        problems.add_general(format!(
            "the plugin has no routes and provides nothing: add `{}`",
            PartKind::Routes.example()
        ));
    }
    check(identity, parts, package, problems)
}

fn finish(plugin: Option<CheckedPlugin>, mut problems: Problems) -> Result<ValidPlugin, Error> {
    let mut manifest = String::new();
    if let (Some(plugin), true) = (&plugin, problems.is_empty()) {
        // Everything has been checked at its place. This is for a rule that is added later and forgotten here.
        if let Err(error) = plugin.manifest.check() {
            problems.add_general(error);
        }
        match plugin.manifest.to_toml() {
            Ok(text) if text.len() > plugin_manifest::SIZE => problems.add_general(format!(
                "the manifest has {} bytes: shorten its texts until it has {}",
                text.len(),
                plugin_manifest::SIZE
            )),
            Ok(text) => manifest = text,
            Err(error) => problems.add_general(format!("failed to write the manifest: {error}")),
        }
    }
    problems.into_result()?;
    match plugin {
        Some(plugin) => Ok(ValidPlugin { plugin, manifest }),
        // Reading stops only if there is an error.
        None => Err(Error::new(
            proc_macro2::Span::call_site(),
            "failed to read the declaration",
        )),
    }
}

/// Returns the functions and types that `parts` name.
fn paths(parts: &[Part]) -> (Vec<syn::Path>, Vec<syn::Path>) {
    let mut functions = Vec::new();
    let mut types = Vec::new();
    for part in parts {
        match &part.content {
            Some(Content::Routes(lines)) => {
                functions.extend(lines.iter().map(|line| line.handler.clone()));
            }
            Some(Content::Actions(lines)) => {
                functions.extend(lines.iter().map(|line| line.function.clone()));
            }
            Some(Content::Provider(path)) => match part.kind {
                PartKind::Provides(
                    plugin_manifest::Action::Identify | plugin_manifest::Action::Events,
                ) => functions.push(path.clone()),
                _ => types.push(path.clone()),
            },
            _ => {}
        }
    }
    (functions, types)
}
