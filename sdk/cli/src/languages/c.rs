//! C: zig's clang compiles the sources, the SDK and the bindings.

mod signatures;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Capability, Language};
use wit_bindgen_core::{AsyncFilterSet, Files};

use self::signatures::function_definitions;
use super::capability_use::{self, CapabilityUse, files_anywhere, files_in, find_capability};
use super::entry_functions::EntryFunctions;
use super::source_functions::{self, SourceFunctions};
use super::syntax_tree::{Grammar, SyntaxTree};
use super::typed_actions::{self, ProviderUse, TYPED_ACTIONS, find_provider_use};
use super::{async_imports, core_module};
use crate::files::{write_file, write_files, write_folder};
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain::{self, PythonPackage};
use crate::world::{self, World};

/// clang with WASI's C library and everything else that it needs, in one package. An author's own clang often lacks
/// them.
const ZIG: PythonPackage = PythonPackage {
    name: "ziglang",
    version: "0.17.1",
};
/// The default source file: all C files in its folder are compiled.
const SOURCE: &str = "src/plugin.c";
const MACRO_CONTENTS: &str = "(preproc_arg) @found";
/// The names of included headers in their marks.
const HEADERS: &str = "(preproc_include path: [(string_literal) (system_lib_string)] @found)";
const IDENTIFIERS: &str = "[(identifier) (type_identifier)] @found";
/// Code that the compiler may leave out. `#ifndef` does not count, because most headers are in one as a whole.
const CONDITIONAL: &str = r##"[(preproc_if) (preproc_ifdef "#ifdef")] @found"##;
/// A stack that is as small as a plugin's memory requires. An overflow is a trap.
const STACK: &str = "-Wl,-z,stack-size=65536";

/// Gives the SDK the name of the functions for streams in a plugin that reads the journal.
const JOURNAL_STREAM: &str = "-DBODY_STREAM(name)=platform_supervisor_journal_stream_u8_##name";

static SDK: Dir = include_dir!("$CARGO_MANIFEST_DIR/../c");

/// Builds the sources in the project's folder.
///
/// # Errors
/// The sources lack a function or use a capability that the project does not ask for, or the compiler cannot be installed or refuses the
/// sources; it has printed the reason.
pub(crate) fn build(project: &ProjectFolder, output: &Output) -> Result<PathBuf> {
    let source = project.source(SOURCE)?;
    let folder = source.parent().unwrap_or(&project.path);
    check_sources(project, &source, folder)?;
    let build = project.path.join("build");
    let wit = build.join("wit");
    let mut world = world::load(&wit, &project.project.manifest)?;
    let bindings = wit_bindgen_c::Opts {
        async_: blocking_imports(&world),
        ..Default::default()
    };
    let mut files = Files::default();
    bindings
        .build()
        .generate(&mut world.resolve, world.id, &mut files)
        .context("failed to write the bindings")?;
    let bound = build.join("bindings");
    write_files(&bound, &files)?;
    if let Some(header) = unit_result(&files) {
        write_file(&bound.join("unit_result.h"), header.as_bytes())?;
    }
    let sdk = build.join("sdk");
    write_folder(&sdk, &SDK)?;
    let routes = build.join("routes.c");
    write_file(&routes, self::routes(project)?.as_bytes())?;

    let module = build.join("core.wasm");
    let folders = [folder, &sdk, &bound];
    let mut command = clang(&folders, output)?;
    command.args([
        "-mexec-model=reactor",
        "-Os",
        // zig defines it if it optimizes.
        "-UNDEBUG",
        // Keeps the names of functions, which traces show. zig has no option that keeps only them.
        "-g1",
        STACK,
        "-Wall",
        "-Wextra",
    ]);
    command.arg(own_paths(project));
    // The first interface with a stream gives its name to the functions of all of them.
    if project.project.manifest.asks_for(Capability::Journal) {
        command.arg(JOURNAL_STREAM);
    }
    if project.project.manifest.asks_for(Capability::Files) {
        command.arg("-DWITH_FILES");
    }
    if project.project.manifest.asks_for(Capability::Clock) {
        command.arg("-DWITH_CLOCK");
    }
    // Before all others, because the C library also has functions of these names.
    command.arg(sdk.join("failure.c"));
    for file in files_in(folder, "c")? {
        command.arg(file);
    }
    if project.provider(Action::Events).is_some() {
        command.arg(sdk.join("events.c"));
    }
    if !project.project.action_functions.is_empty() {
        command.arg(sdk.join("action_provider.c"));
    }
    for action in TYPED_ACTIONS {
        if project.provider(action).is_some() {
            command.arg(sdk.join(format!("{}.c", sdk_name(action))));
        }
    }
    if project.project.manifest.asks_for(Capability::Store) {
        command.arg(sdk.join("store.c"));
    }
    command
        .arg(sdk.join("supervisor.c"))
        .arg(sdk.join("text.c"))
        .arg(bound.join(format!("{}.c", world::WORLD)))
        .arg(bound.join(format!("{}_component_type.o", world::WORLD)))
        .arg(routes)
        .arg("-o")
        .arg(&module);
    if let Err(error) = toolchain::compile(&mut command) {
        signatures::check_linkage(project, folder)?;
        // A header below may include one of the SDK.
        let anywhere = SyntaxTree::read_all(&files_anywhere(project, "h"), Grammar::C);
        capability_use::check(project, capability_uses(folder, &anywhere))?;
        return Err(error);
    }
    signatures::check(project, folder, || clang(&folders, output))?;
    core_module::write_component(&module, &world, &project.project.manifest)
}

/// Returns the header with the type of a result that is nothing or a text: the bindings declare it only for the first exported
/// interface that has it. `None` if no exported interface has it.
fn unit_result(bindings: &Files) -> Option<String> {
    let header = format!("{}.h", world::WORLD);
    let (_, content) = bindings.iter().find(|(name, _)| *name == header)?;
    let lines = std::str::from_utf8(content).ok()?.lines();
    let mut types = lines.filter_map(|line| line.strip_prefix("} ")?.strip_suffix(';'));
    let bound = types.find(|name| {
        name.starts_with("exports_platform_supervisor_") && name.ends_with("_result_void_string_t")
    })?;
    Some(format!(
        "// Written by `supervisor-plugin build`.\n#ifndef SUPERVISOR_UNIT_RESULT_H\n#define SUPERVISOR_UNIT_RESULT_H\n\n\
         #include \"plugin.h\"\n\ntypedef {bound} unit_result_t;\n\n#endif\n"
    ))
}

/// Returns the option with which `__FILE__`, and so the text of an assertion, is the path that the author knows.
fn own_paths(project: &ProjectFolder) -> OsString {
    let mut option = OsString::from("-fmacro-prefix-map=");
    option.push(project.path.join(""));
    option.push("=");
    option
}

/// Returns a command that compiles for a plugin, with these folders of headers.
fn clang(folders: &[&Path], output: &Output) -> Result<Command> {
    let mut command = toolchain::python_module(&ZIG, output)?;
    command.args(["cc", "-target", "wasm32-wasi", "-std=gnu17"]);
    for folder in folders {
        command.arg("-I").arg(folder);
    }
    Ok(command)
}

/// All imports block: C has no other way to wait.
fn blocking_imports(world: &World) -> AsyncFilterSet {
    let mut filters = AsyncFilterSet::default();
    for (interface, function) in async_imports::list(&world.resolve, world.id) {
        filters.push(&format!("-import:{interface}#{function}"));
    }
    filters
}

/// Compares the sources in `folder`, of which `main` is one, with `plugin.toml`.
fn check_sources(project: &ProjectFolder, main: &Path, folder: &Path) -> Result<()> {
    let sources = sources(folder)?;
    source_functions::check(project, main, &functions(&sources))?;
    typed_actions::check(project, provider_uses(folder, &sources))?;
    capability_use::check(project, capability_uses(folder, &sources))
}

/// Reads the headers and sources in a folder.
fn sources(folder: &Path) -> Result<Vec<SyntaxTree>> {
    let files = [files_in(folder, "h")?, files_in(folder, "c")?].concat();
    Ok(SyntaxTree::read_all(&files, Grammar::C))
}

/// Returns the functions of sources. A macro may define a function, so any word may be the name of one; the listed ones are
/// those that answer a request or an event.
fn functions(sources: &[SyntaxTree]) -> SourceFunctions {
    let mut functions = SourceFunctions::default();
    for source in sources {
        for function in function_definitions(source) {
            let answers = ["request_t", "event_t", "identify_result_t"];
            let head = function.head();
            let mut words = head.split(|char: char| !(char.is_alphanumeric() || char == '_'));
            if !function.is_static() && words.any(|word| answers.contains(&word)) {
                functions.add(function.name.text);
            }
        }
        functions.add_words(source);
        // The grammar ends the content of a macro at `/*`, even in a text, and takes what follows for a comment.
        let mut contents = source.find(MACRO_CONTENTS);
        functions.has_others |= source.is_incomplete()
            || contents.any(|content| content.text.matches('"').count() % 2 == 1);
    }
    functions
}

/// Returns the capabilities that the sources in `folder` use, by a header of the SDK or by the bindings.
fn capability_uses(folder: &Path, sources: &[SyntaxTree]) -> Vec<CapabilityUse> {
    let mut uses = Vec::new();
    for source in sources {
        let conditional = source.ranges(CONDITIONAL);
        let headers = sdk_headers(folder, source);
        let of_headers = headers.filter_map(|(name, line)| Some((find_capability(name)?, line)));
        let names = source
            .find(IDENTIFIERS)
            .filter(|name| !conditional.contain(name));
        let bound = names.filter_map(|name| Some((find_bound_capability(name.text)?, name.line)));
        let mut of_source: Vec<_> = of_headers.chain(bound).collect();
        of_source.sort_by_key(|(_, line)| *line);
        let of_source = of_source.into_iter();
        uses.extend(of_source.map(|(capability, line)| CapabilityUse {
            capability,
            file: source.file.clone(),
            line,
        }));
    }
    uses
}

/// Returns the headers for providers that the sources in `folder` include.
fn provider_uses(folder: &Path, sources: &[SyntaxTree]) -> Vec<ProviderUse> {
    let uses = sources.iter().flat_map(|source| {
        sdk_headers(folder, source).filter_map(|(name, line)| {
            let module = match name {
                // The name of a capability too, but C has no header for that.
                "identify" => "identify_window",
                name => name,
            };
            find_provider_use(module, &source.file, line)
        })
    });
    uses.collect()
}

/// Returns the headers that a source includes in any case and that are not the author's own, without `.h`, each with its line.
fn sdk_headers<'tree>(
    folder: &Path,
    source: &'tree SyntaxTree,
) -> impl Iterator<Item = (&'tree str, usize)> {
    let conditional = source.ranges(CONDITIONAL);
    source.find(HEADERS).filter_map(move |header| {
        let name = header.text.trim_matches(['"', '<', '>']);
        let is_own = folder.join(name).is_file() || conditional.contain(&header);
        Some((name.strip_suffix(".h").filter(|_| !is_own)?, header.line))
    })
}

/// Returns the name of the SDK's files for an action.
fn sdk_name(action: Action) -> String {
    action.to_string().replace('-', "_")
}

/// Returns the capability of a name in the bindings, such as `platform_supervisor_host_name_get`.
fn find_bound_capability(name: &str) -> Option<Capability> {
    let name = name.strip_prefix("platform_supervisor_")?;
    let ends = name.match_indices('_').map(|(end, _)| end);
    ends.filter_map(|end| find_capability(&name[..end]))
        .next_back()
}

/// Returns the tables of routes and actions with the function of each, the function that is called for events, and what
/// provides the typed actions.
fn routes(project: &ProjectFolder) -> Result<String> {
    let functions = EntryFunctions::read(project, Language::C, "C")?;
    let mut handlers = String::new();
    let mut table = String::new();
    for (route, handler) in &functions.routes {
        let (method, path) = (&route.method, &route.pattern);
        let _ = writeln!(handlers, "void {handler}(request_t *request);");
        let _ = writeln!(table, "    {{\"{method}\", \"{path}\", {handler}}},");
    }
    let count = functions.routes.len();
    let mut text = format!(
        "// Written by `supervisor-plugin build` from plugin.toml.\n#include \"supervisor.h\"\n\n{handlers}\nconst route_t routes[] = {{\n{table}}};\nconst size_t routes_count = {count};\n"
    );
    if let Some(watcher) = functions.watcher {
        let _ = write!(
            text,
            "\n#include \"events.h\"\n\nevent_answer_t {watcher}(const event_t *event);\n\nevent_answer_t handle_event(const event_t *event) {{\n    return {watcher}(event);\n}}\n"
        );
    }
    let (mut declarations, mut actions) = (String::new(), String::new());
    for (name, function) in &functions.actions {
        let _ = writeln!(declarations, "output_t {function}(input_t input);");
        let _ = writeln!(actions, "    {{\"{name}\", {function}}},");
    }
    if !actions.is_empty() {
        let count = functions.actions.len();
        let _ = write!(
            text,
            "\n#include \"action_provider.h\"\n\n{declarations}\nconst action_t actions[] = {{\n{actions}}};\nconst size_t actions_count = {count};\n"
        );
    }
    for action in TYPED_ACTIONS {
        if let Some(provider) = functions.provider(action) {
            let definition = provider_definition(action, provider);
            let _ = write!(
                text,
                "\n#include \"{}.h\"\n\n{definition}",
                sdk_name(action)
            );
        }
    }
    Ok(text)
}

/// Returns the definition by which the SDK finds what provides an action.
fn provider_definition(action: Action, provider: &str) -> String {
    let (kind, name) = match action {
        Action::BootConfig => ("boot_configurator_t", "boot_config_provider"),
        Action::ProxyRedirector => ("proxy_redirector_t", "proxy_provider"),
        Action::OsUpdate => ("os_updater_t", "os_updater"),
        Action::Identify | Action::Events | Action::ActionProvider => {
            return format!(
                "identify_result_t {provider}(void);\n\nidentify_result_t identify_provider(void) {{\n    return {provider}();\n}}\n"
            );
        }
    };
    format!("extern const {kind} {provider};\nconst {kind} *const {name} = &{provider};\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_answer_are_listed_and_any_word_may_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let source = "#include \"supervisor.h\"\n// void gone(request_t *request) {\nvoid rail(request_t *request) {\n    \
                      f(request_t);\n}\nstatic void own(request_t *request) {}\nevent_answer_t *watch(const event_t *e) {}\n\
                      HANDLER(reset)\nint add(int a) {}\n";
        std::fs::write(folder.path().join("plugin.c"), source).unwrap();
        let found = functions(&sources(folder.path()).unwrap());
        assert_eq!(found.listed, ["rail", "watch"]);
        for (name, is_there) in [
            ("reset", true),
            ("own", true),
            ("gone", false),
            ("greet", false),
        ] {
            assert_eq!(found.names.contains(name), is_there, "{name}");
        }
        assert!(!found.has_others);
        let source = "#define ACCEPT \"*/*\"\nvoid hidden(request_t *request) {}\n/* end */\n";
        std::fs::write(folder.path().join("plugin.c"), source).unwrap();
        assert!(functions(&sources(folder.path()).unwrap()).has_others);
    }

    #[test]
    fn the_type_that_interfaces_share_is_found_under_the_name_of_the_first_one() {
        let name = "exports_platform_supervisor_os_update_result_void_string_t";
        let import = "} platform_supervisor_identify_result_void_string_t;\n";
        for (text, expected) in [
            (format!("{import}}} {name};\n"), Some(name)),
            (import.to_owned(), None),
        ] {
            let mut files = Files::default();
            files.push("plugin.h", text.as_bytes());
            let header = unit_result(&files);
            let found = header.as_deref().map(|text| text.contains(name));
            assert_eq!(found, expected.map(|_| true), "{header:?}");
        }
    }

    #[test]
    fn a_capability_is_used_by_its_header_or_by_the_bindings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plugin.c");
        let source = "#include \"supervisor.h\"\n#  include \"store.h\"\n// platform_supervisor_led_names\n\
                      void f(void) {\n    platform_supervisor_host_name_get(platform_supervisor_timer_sleep);\n}\n";
        std::fs::write(&file, source).unwrap();
        let expected = |capability, line| CapabilityUse {
            capability,
            file: file.clone(),
            line,
        };
        let host_name = expected(Capability::HostName, 5);
        let uses = capability_uses(folder.path(), &sources(folder.path()).unwrap());
        assert_eq!(uses, [expected(Capability::Store, 2), host_name]);

        // A header of the author's own has nothing to do with the SDK.
        std::fs::write(folder.path().join("store.h"), "").unwrap();
        let uses = capability_uses(folder.path(), &sources(folder.path()).unwrap());
        assert_eq!(uses, [expected(Capability::HostName, 5)]);

        // The compiler may leave these out, and the last one is a text.
        let source = "#if 0\n#include \"led.h\"\n#endif\n#ifdef A\n#include <gpio.h>\n#endif\n\
                      const char *a = \"platform_supervisor_led_names\";\n";
        std::fs::write(&file, source).unwrap();
        let uses = capability_uses(folder.path(), &sources(folder.path()).unwrap());
        assert_eq!(uses, []);
        let source = "#ifndef A\n#define A\n#include <gpio.h>\n#endif\n";
        std::fs::write(&file, source).unwrap();
        let uses = capability_uses(folder.path(), &sources(folder.path()).unwrap());
        assert_eq!(uses, [expected(Capability::Gpio, 3)]);
    }
}
