//! `supervisor-compile`: a WebAssembly component on standard input, native code on standard output.
//!
//! This is a library, so that the tool for plugin authors can contain this program too: the tool starts
//! itself as the compiler.
//!
//! It is the only program that contains a compiler. The supervisor starts one for each component that it
//! does not know yet ([`compiled_code::Cache`]), so the compiler's memory and faults do not affect the
//! supervisor. Before it reads a byte, it gives up its privileges and limits its resources.

mod confine;
mod earlier_functions;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::Parser;
use compiled_code::FunctionList;
use earlier_functions::EarlierFunctions;
use wasmtime::CacheStore;

/// Compiles the component on standard input and writes the native code to standard output.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The kind of component: `plugin` or `service`.
    #[arg(long)]
    profile: sandbox::Profile,
    /// The maximum size of a component, in bytes.
    #[arg(long, default_value_t = 64 << 20)]
    wasm_bytes: u64,
    /// The maximum address space of this process, in bytes.
    #[arg(long, default_value_t = 1 << 30)]
    memory_bytes: u64,
    /// The maximum CPU time of this process, in seconds.
    #[arg(long, default_value_t = 120)]
    cpu_seconds: u64,
    /// Compile nothing if a wall around this process is missing.
    #[arg(long)]
    require_confinement: bool,
    /// Take over functions from earlier compilations, which are in the first bytes of standard input, as many as this
    /// says. The output is then the number of bytes of native code, in 8 bytes, the least significant one first, the
    /// native code, and the functions that were not among the earlier ones.
    #[arg(long, value_name = "BYTES")]
    functions_bytes: Option<u64>,
    /// The maximum size of the new functions in the output, in bytes.
    #[arg(long, default_value_t = 64 << 20, requires = "functions_bytes", value_name = "BYTES")]
    new_functions_bytes: usize,
}

/// Runs the program: reads its arguments and the component, and writes the native code.
#[must_use]
pub fn main() -> ExitCode {
    match compile(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compile(arguments: &Arguments) -> anyhow::Result<()> {
    let report = confine::confine(
        arguments.memory_bytes,
        arguments.cpu_seconds,
        arguments.require_confinement,
    )?;
    // The first line of its messages, before a byte of the component is read.
    eprintln!(
        "{}{}",
        compiled_code::WALLS,
        serde_json::to_string(&report).context("failed to report the restrictions in force")?
    );
    let mut input = std::io::stdin().lock();
    let functions = arguments
        .functions_bytes
        .map(|bytes| read_functions(&mut input, bytes, arguments.new_functions_bytes))
        .transpose()?;
    let mut wasm = Vec::new();
    let limit = arguments.wasm_bytes;
    input
        .take(limit + 1)
        .read_to_end(&mut wasm)
        .context("cannot read the component")?;
    ensure!(
        wasm.len() as u64 <= limit,
        "the component has more than {limit} bytes"
    );
    // wasmtime would also accept the text format; our components have the binary one.
    ensure!(wasm.starts_with(b"\0asm"), "not a WebAssembly file");
    ensure!(
        wasm.get(4..8) != Some(&[1, 0, 0, 0]),
        "a core module and not a component; build it for the target wasm32-wasip2"
    );
    let store = functions
        .clone()
        .map(|functions| functions as Arc<dyn CacheStore>);
    let code = sandbox::precompile(arguments.profile, &wasm, store)?;
    let mut output = std::io::stdout().lock();
    let written = match functions {
        None => output.write_all(&code),
        Some(functions) => output
            .write_all(&(code.len() as u64).to_le_bytes())
            .and_then(|()| output.write_all(&code))
            .and_then(|()| output.write_all(&functions.0.take_new())),
    };
    written
        .and_then(|()| output.flush())
        .context("cannot write the native code")
}

/// Reads the functions of earlier compilations, and leaves space for at most `most` bytes of new ones.
fn read_functions(
    input: &mut impl std::io::Read,
    bytes: u64,
    most: usize,
) -> anyhow::Result<Arc<EarlierFunctions>> {
    // The caller is the cache, which has measured them; reading them into less space would copy them several times.
    let mut stored = Vec::with_capacity(usize::try_from(bytes)?);
    input
        .take(bytes)
        .read_to_end(&mut stored)
        .context("cannot read the functions of earlier compilations")?;
    Ok(Arc::new(EarlierFunctions(FunctionList::new(stored, most))))
}
