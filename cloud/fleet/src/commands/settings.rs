//! `settings`: the cloud that the program uses, the user, and whether a file or the environment determines them. It
//! sends no requests, and shows no credentials.

use crate::failure::Result;
use crate::output::Output;
use crate::session;

pub(crate) fn show(output: &Output) -> Result<()> {
    let settings = session::settings()?;
    let from = |value: Option<&str>, from: Option<&str>| match (value, from) {
        (Some(value), Some(from)) => format!("{value} (from {from})"),
        _ => "none".to_owned(),
    };
    let cloud = from(settings.url.as_deref(), settings.url_from);
    let credential = from(settings.credential, settings.credential_from);
    output.details(
        &settings,
        &[
            ("version", Some(settings.version.to_owned())),
            ("file", Some(settings.file.display().to_string())),
            ("cloud", Some(cloud)),
            ("credential", Some(credential)),
            ("environment", Some(settings.environment.join(", "))),
        ],
    );
    Ok(())
}
