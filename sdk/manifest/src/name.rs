//! The rule for the names of plugins, and of their schedules and actions.

/// The longest name, in bytes.
pub(crate) const NAME: usize = 63;

/// Checks the name of a plugin.
///
/// # Errors
/// The rule for names.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME || name.starts_with('-') || !name.bytes().all(fits) {
        return Err(
            "`name` must be at most 63 lower-case letters, digits and `-`, and begin with a letter or digit",
        );
    }
    Ok(())
}

/// Checks the name of a schedule.
///
/// # Errors
/// The rule for names.
pub fn check_schedule_name(name: &str) -> Result<(), String> {
    check_name_of("schedule", name)
}

/// Checks the name of a plugin's own action.
///
/// # Errors
/// The rule for names.
pub fn check_action_name(name: &str) -> Result<(), String> {
    check_name_of("action", name)
}

fn check_name_of(what: &str, name: &str) -> Result<(), String> {
    check_name(name).map_err(|_| {
        let name: String = name.chars().take(100).collect();
        format!(
            "the {what} `{name}` must have a name of at most 63 lower-case letters, digits and `-`, that begins with a letter or digit"
        )
    })
}
