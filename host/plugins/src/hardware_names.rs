//! Names of what hardware is connected to, in the policy: those that the policy gives, and those that the kernel has.

/// The longest name that the policy gives, in bytes.
const NAME: usize = 63;
/// The longest name of the kernel's that is looked for, in bytes.
const KERNEL_NAME: usize = 255;

/// Checks the name that the policy gives a line or a chip, of the kind `kind`, in the list `list`.
///
/// # Errors
/// What to write.
pub(crate) fn check_name(list: &str, kind: &str, name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !name.is_empty() && name.len() <= NAME && name.bytes().all(fits) {
        return Ok(());
    }
    let excerpt: String = name.chars().take(NAME).collect();
    Err(format!(
        "`{list}` has a {kind} with the name {excerpt:?}: write 1 to {NAME} letters, digits and `-._`"
    ))
}

/// Checks a name by which something of the kernel's is looked for.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_kernel_name(list: &str, kind: &str, name: &str) -> Result<(), String> {
    if !name.is_empty() && name.len() <= KERNEL_NAME && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let excerpt: String = name.chars().take(NAME).collect();
    Err(format!(
        "`{list}` has the {kind} {excerpt:?}: write 1 to {KERNEL_NAME} bytes without control characters"
    ))
}
