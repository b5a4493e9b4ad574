//! The program `supervisor-compile`.

fn main() -> std::process::ExitCode {
    supervisor_compile::main()
}
