//! Questions to the person at the terminal. Without a terminal, the error says which argument to
//! use instead.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use crate::failure::{Failure, Result};

fn somebody_is_there() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Returns the given value, or else prompts for a line.
///
/// # Errors
/// If there is no terminal to prompt at.
pub(crate) fn line(given: Option<String>, what: &str, instead: &str) -> Result<String> {
    if let Some(given) = given {
        return Ok(given);
    }
    if !somebody_is_there() {
        return Err(missing(what, instead));
    }
    eprint!("{what}: ");
    let failed = |error| Failure::failed("the terminal cannot be read").because(error);
    stderr().flush().map_err(failed)?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(line.trim().to_owned())
}

/// Returns the given value, or else prompts for a line that is not shown.
///
/// # Errors
/// If there is no terminal to prompt at.
pub(crate) fn given_secret(given: Option<String>, what: &str, instead: &str) -> Result<String> {
    given.map_or_else(|| secret(what, instead), Ok)
}

/// Prompts for a line that is not shown.
///
/// # Errors
/// If there is no terminal to prompt at.
pub(crate) fn secret(what: &str, instead: &str) -> Result<String> {
    if !somebody_is_there() {
        return Err(missing(what, instead));
    }
    rpassword::prompt_password(format!("{what}: "))
        .map_err(|error| Failure::failed("the terminal cannot be read").because(error))
}

/// Continues if `what` ("delete the fleet …") was confirmed `beforehand`, or is confirmed now.
///
/// # Errors
/// If it is not confirmed.
pub(crate) fn confirmed(what: &str, beforehand: bool) -> Result<()> {
    if beforehand {
        return Ok(());
    }
    if !somebody_is_there() {
        return Err(
            Failure::usage(format!("cannot ask for confirmation to {what}"))
                .hint("add `--yes` to do it without confirmation"),
        );
    }
    let answer = line(None, &format!("{what}? [y/N]"), "--yes")?;
    match answer.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was changed")),
    }
}

fn missing(what: &str, instead: &str) -> Failure {
    Failure::usage(format!("the {} is missing", what.to_lowercase()))
        .hint(format!("give it as {instead}"))
}
