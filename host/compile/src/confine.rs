//! What this process gives up before it looks at a component.
//!
//! The component is hostile and the compiler is large. So the process that holds them together can
//! open nothing, start nothing and reach no one: it has its three pipes and a bounded amount of memory
//! and CPU time.

use anyhow::{Context as _, Result, ensure};
use confinement::{
    Bound, Bounds, Confinement, FileAccess, Identity, Report, SystemCalls, can_become,
};

/// `nobody` and `nogroup`, on every distribution that matters here.
const NOBODY: u32 = 65534;
/// Standard input, output and error are open; nothing else ever is.
const OPEN_FILES: u64 = 3;
/// A compilation may wait for whatever the device does for its users.
const NICENESS: i32 = 10;
/// Where memory runs out, the kernel ends a compilation before anything else of the device: it is tried again.
const OOM_SCORE: i64 = 800;

/// Becomes a user without rights, for good, with so much address space (bytes) and CPU time (seconds).
///
/// # Errors
/// Where it cannot become that user, and where a wall is missing that is `required`.
pub(crate) fn confine(memory: u64, cpu: u64, required: bool) -> Result<Report> {
    // In a container without other users it stays who it is, and the report says so.
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
        "the policy requires walls that are missing here: {}; set `require_confinement = false` in the policy to run without them",
        report.missing_in_words()
    );
    Ok(report)
}
