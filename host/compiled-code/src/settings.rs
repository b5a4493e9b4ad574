//! The settings of the wasm engine that are part of compiled code, as plain data.
//!
//! A compiled file loads only into an engine with the settings that it was compiled with, so they all stand here, for
//! the compiler and for those who run its output. What is a matter of the running process alone (the pool's size, a
//! store's limits) is set by its owner.

use crate::Profile;

/// The version of wasmtime that compiles and runs components.
pub const WASMTIME: &str = "48.0.8";

/// The most bytes that a plugin's linear memory can ever have, whatever its limits say: the address
/// space that each slot of the pool reserves.
pub const PLUGIN_MEMORY: usize = 32 << 20;
/// What one instance of a plugin may be made of.
pub const PLUGIN_PARTS: PluginParts = PluginParts {
    core_instances: 64,
    memories: 4,
    tables: 8,
    table_elements: 20_000,
};
/// Unmapped address space behind a plugin's memory, in bytes.
const PLUGIN_GUARD: u64 = 64 << 10;
/// Native stack of a plugin's call, in bytes: what the guest may use, and with the host's frames.
const PLUGIN_STACK: (usize, usize) = (256 << 10, 512 << 10);
/// The same of a service, in bytes: it is alone in its process, and its `main` thread would have had
/// megabytes elsewhere.
const SERVICE_STACK: (usize, usize) = (2 << 20, 3 << 20);

/// The most of each part that an instance of a plugin has. Tools for Rust and C make a handful of core instances with one
/// memory, those for Python 38, and those for JavaScript and what is composed of several components up to three memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginParts {
    /// Instances of core modules, of all components in the file together.
    pub core_instances: u32,
    /// Linear memories.
    pub memories: u32,
    /// Tables.
    pub tables: u32,
    /// Entries of one table at the start.
    pub table_elements: usize,
}

/// All that decides what compiled code looks like, but for the processor, which the engine checks when it loads a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The version of wasmtime.
    pub wasmtime: &'static str,
    /// What components may use beyond WebAssembly's first version; all else is off.
    pub proposals: &'static [Proposal],
    /// Whether code looks now and then for a deadline.
    pub epoch_interruption: bool,
    /// Whether there is a table for unwinders of other programs.
    pub native_unwind_info: bool,
    /// How linear memory is laid out; `None` leaves it as wasmtime has it by default for the processor.
    pub memory: Option<Memory>,
    /// Bytes of native stack that a guest may use.
    pub wasm_stack: usize,
    /// The same with the frames of the host, in bytes.
    pub stack: usize,
}

/// How linear memory is laid out in the address space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Bytes of address space that each memory has from its beginning.
    pub reservation: u64,
    /// Unmapped bytes behind it.
    pub guard: u64,
    /// Bytes of address space that are added when a memory moves.
    pub growth: u64,
    /// Whether a memory that grows may move.
    pub may_move: bool,
}

/// A proposal of WebAssembly. Each is code of the compiler and of the runtime that an attacker can aim at.
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

/// What components may use: what the tools of docs/plugins.md and docs/wasm-services.md emit (for Rust, C and C++, Go,
/// JavaScript and Python), whatever wasmtime has on by default.
///
/// - What LLVM has compilers emit without being asked (its target `generic` and what it calls `lime1`): mutable globals,
///   sign extension, conversions that saturate, several results, bulk memory, reference types, constants of several steps.
/// - SIMD, which programs of C and Rust ask for and JavaScript's engine is built with.
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
    /// Those of `profile`.
    #[must_use]
    pub fn of(profile: Profile) -> Settings {
        let (memory, (wasm_stack, stack)) = match profile {
            Profile::Plugin => (Some(PLUGIN_LAYOUT), PLUGIN_STACK),
            // On 64 bits wasmtime reserves 4 GiB (address space, not memory), which needs no bounds checks.
            Profile::Service => (None, SERVICE_STACK),
        };
        Settings {
            wasmtime: WASMTIME,
            proposals: PROPOSALS,
            // A loop in a guest ends at a deadline. Fuel would count more exactly and cost up to three
            // times as much in tight loops.
            epoch_interruption: true,
            // For other programs' unwinders only: our own traces do without it, and registering it is
            // what makes loading slow where there are many components.
            native_unwind_info: false,
            memory,
            wasm_stack,
            stack,
        }
    }
}

const PLUGIN_LAYOUT: Memory = Memory {
    // A small reservation keeps the address space of the pool at about 32 MiB a slot
    // instead of 4 GiB, for explicit bounds checks in the code.
    reservation: PLUGIN_MEMORY as u64,
    guard: PLUGIN_GUARD,
    growth: 0,
    // The pool gives each memory its whole reservation, so that it never moves.
    may_move: false,
};
