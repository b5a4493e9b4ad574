//! What this process gives up before it reads a component.
//!
//! The component is hostile and the compiler is large, so the process that holds both cannot open anything,
//! start anything or reach anyone: it has its three pipes and a bounded amount of memory and CPU time.

use anyhow::{Context as _, Result, ensure};
use confinement::{
    Bound, Bounds, Confinement, FileAccess, Identity, Report, SystemCalls, can_become,
};

/// `nobody` and `nogroup`, on every distribution that matters here.
const NOBODY: u32 = 65534;
/// Only standard input, output and error are ever open.
const OPEN_FILES: u64 = 3;
/// A compilation has a lower priority than the work that the device does for its users.
const NICENESS: i32 = 10;
/// If memory runs out, the kernel kills a compilation before anything else on the device: it is tried again.
const OOM_SCORE: i64 = 800;

/// Becomes permanently a user without rights, with this much address space (bytes) and CPU time (seconds).
///
/// # Errors
/// If it cannot become that user, or if a wall is missing and `required` is set.
pub(crate) fn confine(memory: u64, cpu: u64, required: bool) -> Result<Report> {
    // In a container without other users, the process keeps its user, and the report says so.
    let has_nobody = can_become(NOBODY, 1).is_ok();
    let confinement = Confinement {
        bounds: Bounds {
            limits: vec![
                Bound::AddressSpace(memory),
                Bound::CpuSeconds(cpu),
                Bound::CoreDump(0),
                Bound::FileSize(0),
                Bound::Processes(0),
                Bound::Descriptors(OPEN_FILES),
            ],
            niceness: Some(NICENESS),
            oom_score: Some(OOM_SCORE),
            // A supervisor that was killed is started again, and starts compilers of its own.
            ends_with_parent: true,
        },
        identity: has_nobody.then(|| Identity::new(NOBODY, NOBODY)),
        files: Some(FileAccess::default()),
        system_calls: Some(SystemCalls::COMPUTATION),
    };
    let report = confinement
        .apply()
        .context("failed to confine the compiler")?;
    ensure!(
        !required || report.missing.is_empty(),
        "the policy requires restrictions that this system lacks: {}; set `require_confinement = false` in the policy to run without them",
        report.missing_in_words()
    );
    Ok(report)
}
