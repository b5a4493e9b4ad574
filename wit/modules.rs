// `capabilities!(modules [VISIBILITY])` declares the module of each capability of ours (`wit/capabilities.rs`): a file
// next to the one that includes this one. `cargo fmt` does not find such files; `cargo xtask check` names them to rustfmt.
macro_rules! modules {
    ([$visibility:vis] $(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        $(modules! { $origin [$visibility] $module })*
    };
    (ours [$visibility:vis] $module:ident) => {
        $visibility mod $module;
    };
    ($origin:ident [$visibility:vis] $module:ident) => {};
}
