//! The process that runs plugins.
//!
//! It sets up its walls before it does anything else: from then on it is nobody, and opens no sockets and no files
//! except those below the folders that its plugins were granted. It receives its work as descriptors.

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use confinement::{Bound, Bounds, Confinement, FileAccess, Identity, Report, Sockets, SystemCalls};
use plugin_protocol::GuestRuntime;
use plugin_runtime::{Resources, Runtime};
use plugin_worker::Assignment;

/// Lower priority than the supervisor, which keeps 0: no call of a plugin is as urgent as an answer of the API.
const NICENESS: i32 = 5;
/// Killed before the supervisor when the machine's memory runs out: it is restarted, and only calls are lost.
const OOM_SCORE: i64 = 500;
/// Descriptors: sockets of calls, code, and files of plugins.
const MAX_DESCRIPTORS: u64 = 4096;
/// Threads of the worker's own user.
const MAX_THREADS: u64 = 128;
/// Threads that run plugins: a busy plugin does not keep the others waiting.
const THREADS: usize = 2;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The maximum number of instances at a time
    #[arg(long)]
    slots: usize,
    /// The maximum memory of all instances together, in bytes
    #[arg(long)]
    memory: usize,
    /// The user to switch to; with --group
    #[arg(long, requires = "group")]
    user: Option<u32>,
    /// The group to switch to
    #[arg(long)]
    group: Option<u32>,
    /// A folder to read
    #[arg(long)]
    read: Vec<PathBuf>,
    /// A folder to read and write
    #[arg(long)]
    write: Vec<PathBuf>,
}

/// Works until the supervisor is gone.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match work(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // The supervisor is gone, or already knows of the error.
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(arguments: &Arguments) -> Result<()> {
    let notes = io::stdin().as_fd().try_clone_to_owned()?;
    heap::share_heaps();
    let walls = confine(arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("failed to start threads")?;
    runtime.block_on(async {
        let (walls, guests) = match walls {
            Ok(walls) => (walls, guests(arguments)),
            Err(error) => (Report::default(), Err(format!("{error:#}"))),
        };
        // On a thread that runs tasks itself, so the tasks that it starts need not wake another.
        let served = tokio::spawn(plugin_worker::serve(Assignment {
            notes,
            walls,
            runtime: guests,
        }));
        Ok(served.await??)
    })
}

fn guests(arguments: &Arguments) -> std::result::Result<Arc<dyn GuestRuntime>, String> {
    let runtime = Runtime::new(Resources {
        slots: arguments.slots,
        memory: arguments.memory,
        return_memory: Some(heap::return_unused),
    });
    let runtime = runtime.map_err(|error| error.to_string())?;
    Ok(Arc::new(runtime))
}

/// Takes away everything that plugins do not need.
fn confine(arguments: &Arguments) -> Result<Report> {
    let identity = arguments.user.zip(arguments.group);
    // Opened without capabilities, it does not reveal the places of the pages in the machine's memory.
    let page_map = confinement::without_capabilities(plugin_runtime::open_page_map);
    let mut limits = vec![Bound::Descriptors(MAX_DESCRIPTORS), Bound::CoreDump(0)];
    if identity.is_some() {
        limits.push(Bound::Processes(MAX_THREADS));
    }
    let confinement = Confinement {
        bounds: Bounds {
            limits,
            niceness: Some(NICENESS),
            oom_score: Some(OOM_SCORE),
            ends_with_parent: false,
        },
        identity: identity.map(|(user, group)| Identity::new(user, group)),
        files: Some(FileAccess {
            read: arguments.read.clone(),
            write: arguments.write.clone(),
        }),
        system_calls: Some(SystemCalls {
            threads: true,
            files: !arguments.read.is_empty() || !arguments.write.is_empty(),
            page_map: page_map.unwrap_or(false),
            sockets: Sockets::None,
        }),
    };
    confinement
        .apply()
        .context("failed to confine the process that runs plugins")
}
