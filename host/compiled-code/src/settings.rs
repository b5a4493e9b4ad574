//! The settings of the wasm engine that are part of compiled code, as plain data.
//!
//! A compiled file loads only into an engine with the settings that it was compiled with, so they are all here, for the
//! compiler and for the programs that run its output. Settings that concern only the running process (the pool's size,
//! a store's limits) are set by its owner.

use crate::Profile;

/// The version of wasmtime that compiles and runs components.
pub const WASMTIME: &str = "48.0.8";

/// The most bytes that a plugin's linear memory can ever have, whatever its limits say: the address
/// space that each slot of the pool reserves.
pub const PLUGIN_MEMORY: usize = 32 << 20;
/// The largest allowed number of parts of a plugin's instance.
pub const PLUGIN_PARTS: PluginParts = PluginParts {
    core_instances: 64,
    memories: 4,
    tables: 8,
    table_elements: 20_000,
};
/// Unmapped address space after a plugin's memory, in bytes.
const PLUGIN_GUARD: u64 = 64 << 10;
/// Native stack of a plugin's call, in bytes: for the guest alone, and including the host's frames.
const PLUGIN_STACK: (usize, usize) = (256 << 10, 512 << 10);
/// The same for a service, in bytes: it is alone in its process, and elsewhere its `main` thread would have megabytes.
const SERVICE_STACK: (usize, usize) = (2 << 20, 3 << 20);

/// The most of each part that an instance of a plugin can have. Tools for Rust and C create a handful of core instances
/// with one memory, those for Python 38 core instances, and those for JavaScript and for components composed of several
/// others up to three memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginParts {
    /// Instances of core modules, for all components in the file together.
    pub core_instances: u32,
    /// Linear memories.
    pub memories: u32,
    /// Tables.
    pub tables: u32,
    /// Entries of one table at its start.
    pub table_elements: usize,
}

/// Everything that determines compiled code, except for the processor, which the engine checks when it loads a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The version of wasmtime.
    pub wasmtime: &'static str,
    /// The proposals that components may use beyond WebAssembly's first version; all others are off.
    pub proposals: &'static [Proposal],
    /// Whether code regularly checks a deadline.
    pub epoch_interruption: bool,
    /// Whether there is a table for other programs' unwinders.
    pub native_unwind_info: bool,
    /// The layout of linear memory; `None` is wasmtime's default for the processor.
    pub memory: Option<Memory>,
    /// Bytes of native stack that a guest may use.
    pub wasm_stack: usize,
    /// The same including the frames of the host, in bytes.
    pub stack: usize,
}

/// The layout of linear memory in the address space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Bytes of address space that each memory has from the beginning.
    pub reservation: u64,
    /// Unmapped bytes after it.
    pub guard: u64,
    /// Bytes of address space that are added when a memory moves.
    pub growth: u64,
    /// Whether a memory that grows may move.
    pub may_move: bool,
}

/// A proposal of WebAssembly. Each one means code in the compiler and the runtime that can be attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are the names of the proposals")]
pub enum Proposal {
    Floats,
    MutableGlobals,
    SaturatingConversions,
    SignExtension,
    MultipleResults,
    BulkMemory,
    ReferenceTypes,
    ExtendedConstants,
    Simd,
    MultipleMemories,
    ComponentModel,
    AsynchronousComponents,
}

/// The proposals that components may use: those that the tools of docs/plugins.md and docs/wasm-services.md emit (for
/// Rust, C and C++, Go, JavaScript and Python), whatever wasmtime has on by default.
///
/// - Those that compilers emit by default with LLVM (its target `generic`, and the set that it calls `lime1`): mutable
///   globals, sign extension, conversions that saturate, several results, bulk memory, reference types, constants of
///   several steps.
/// - SIMD, which programs in C and Rust may enable, and with which JavaScript's engine is built.
/// - Several memories: wasmtime itself writes the code between two components of one file with them.
/// - The component model with its asynchronous functions and streams.
const PROPOSALS: &[Proposal] = &[
    Proposal::Floats,
    Proposal::MutableGlobals,
    Proposal::SaturatingConversions,
    Proposal::SignExtension,
    Proposal::MultipleResults,
    Proposal::BulkMemory,
    Proposal::ReferenceTypes,
    Proposal::ExtendedConstants,
    Proposal::Simd,
    Proposal::MultipleMemories,
    Proposal::ComponentModel,
    Proposal::AsynchronousComponents,
];

impl Settings {
    /// Returns the settings for `profile`.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Settings {
        let (memory, (wasm_stack, stack)) = match profile {
            Profile::Plugin => (Some(PLUGIN_LAYOUT), PLUGIN_STACK),
            // On 64 bits wasmtime reserves 4 GiB (address space, not memory), and then needs no bounds checks.
            Profile::Service => (None, SERVICE_STACK),
        };
        Settings {
            wasmtime: WASMTIME,
            proposals: PROPOSALS,
            // A deadline ends a loop in a guest. Fuel would count more exactly, but cost up to three times as much in
            // tight loops.
            epoch_interruption: true,
            // Only for other programs' unwinders: our own traces do not need it, and registering it makes loading slow
            // if there are many components.
            native_unwind_info: false,
            memory,
            wasm_stack,
            stack,
        }
    }
}

const PLUGIN_LAYOUT: Memory = Memory {
    // A small reservation keeps the address space of the pool at about 32 MiB per slot instead of 4 GiB, at the cost of
    // explicit bounds checks in the code.
    reservation: PLUGIN_MEMORY as u64,
    guard: PLUGIN_GUARD,
    growth: 0,
    // The pool gives each memory its whole reservation, so it never moves.
    may_move: false,
};
