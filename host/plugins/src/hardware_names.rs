//! Names of hardware connections in the policy: those that the policy defines, and those of the kernel.

/// The longest name that the policy can define, in bytes.
const NAME: usize = 63;
/// The longest kernel name that can be looked up, in bytes.
const KERNEL_NAME: usize = 255;

/// Checks the name that the policy defines for a line or a chip, of the kind `kind`, in the list `list`.
///
/// # Errors
/// What to write instead.
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

/// Checks the name of a kernel object before it is looked up.
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
