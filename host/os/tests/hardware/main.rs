//! GPIO lines and I2C buses of the kernel, with its own mocks (gpio-sim, i2c-stub), in a virtual machine. The tests are
//! in `gpio` and `i2c`; the one that starts the machine is here.

#![expect(
    clippy::unwrap_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

mod gpio;
mod i2c;
mod simulated_chip;

use tests::VirtualMachine;

#[tokio::test]
async fn the_kernels_lines_and_buses_are_used_as_they_should() {
    let Some(machine) = VirtualMachine::find() else {
        return;
    };
    machine.run_ignored_tests("").await;
}
