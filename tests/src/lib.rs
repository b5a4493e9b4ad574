//! Black-box suites against the real binaries.
