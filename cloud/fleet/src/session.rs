//! The cloud and the user that commands use: the file that `fleet login` writes, overridden by the environment.

use std::env;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind, Result, signed_out};
use crate::files;

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct SessionFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// A cloud and a credential for it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) url: String,
    pub(crate) token: String,
    /// Whether the token comes from the file, in which it is renewed.
    pub(crate) kept: bool,
}

impl Session {
    /// Returns the session from the environment, or else from the file.
    ///
    /// # Errors
    /// If neither is complete.
    pub(crate) fn current() -> Result<Self> {
        let file = read(&file()?)?;
        Self::new(file, variable("FLEET_URL"), variable("FLEET_TOKEN"))
    }

    fn new(file: SessionFile, url: Option<String>, token: Option<String>) -> Result<Self> {
        let has_token = file.token.is_some();
        let sources = Sources::new(file, url, token)?;
        let (url, _) = sources.url.ok_or_else(signed_out)?;
        match sources.token {
            Some((token, from)) => Ok(Session {
                url,
                token,
                kept: from == FILE,
            }),
            None if has_token => Err(Failure::not_allowed(format!(
                "nobody is signed in at {url}, which FLEET_URL names"
            ))
            .hint("set FLEET_TOKEN as well, or unset FLEET_URL")),
            None => Err(signed_out()),
        }
    }
}

/// The name of the file as a source; variables are named by themselves.
const FILE: &str = "the file";

/// The address and the credential in use, each with its source.
struct Sources {
    url: Option<(String, &'static str)>,
    token: Option<(String, &'static str)>,
}

impl Sources {
    /// Combines the file with the variables of the environment, which take precedence.
    fn new(file: SessionFile, url: Option<String>, token: Option<String>) -> Result<Self> {
        let url = url.as_deref().map(checked_url).transpose()?;
        // The file's token belongs to the file's cloud, and is sent to no other.
        let same = url.is_none() || url == file.url;
        let url = url.map(|url| (url, "FLEET_URL"));
        let token = token.map(|token| (token, "FLEET_TOKEN"));
        let of_file = file.token.filter(|_| same).map(|token| (token, FILE));
        Ok(Sources {
            url: url.or(file.url.map(|url| (url, FILE))),
            token: token.or(of_file),
        })
    }
}

/// Returns the session at a cloud, if there is one.
///
/// # Errors
/// If the file cannot be read, or FLEET_URL is not an address.
pub(crate) fn at(url: &str) -> Result<Option<Session>> {
    match Session::current() {
        Ok(session) => Ok(Some(session).filter(|session| session.url == url)),
        Err(failure) if failure.kind == Kind::NotAllowed => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The settings of this program.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Settings {
    pub(crate) version: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) url: Option<String>,
    pub(crate) url_from: Option<&'static str>,
    /// `session` or `key`; never the credential itself.
    pub(crate) credential: Option<&'static str>,
    pub(crate) credential_from: Option<&'static str>,
    /// The names of those variables that are set and have an effect.
    pub(crate) environment: Vec<&'static str>,
}

/// Variables of the environment that have an effect.
const VARIABLES: [&str; 5] = [
    "FLEET_URL",
    "FLEET_TOKEN",
    "FLEET_PASSWORD",
    "NO_COLOR",
    "XDG_CONFIG_HOME",
];

/// Returns the settings of this program, and their sources.
///
/// # Errors
/// If the file cannot be read, or FLEET_URL is not an address.
pub(crate) fn settings() -> Result<Settings> {
    let path = file()?;
    let Sources { url, token } =
        Sources::new(read(&path)?, variable("FLEET_URL"), variable("FLEET_TOKEN"))?;
    let (url, url_from) = url.unzip();
    let (token, credential_from) = token.unzip();
    Ok(Settings {
        version: env!("CARGO_PKG_VERSION"),
        file: path,
        url,
        url_from,
        credential: token.map(|token| if is_session(&token) { "session" } else { "key" }),
        credential_from,
        environment: VARIABLES
            .into_iter()
            .filter(|name| variable(name).is_some())
            .collect(),
    })
}

/// Returns whether a credential is a session token rather than a key.
pub(crate) fn is_session(token: &str) -> bool {
    token.contains('.')
}

/// Returns the last cloud, for `fleet login` without an address.
pub(crate) fn known_url() -> Result<Option<String>> {
    match variable("FLEET_URL") {
        Some(url) => checked_url(&url).map(Some),
        None => Ok(read(&file()?)?.url),
    }
}

/// Stores a session for later commands, and returns the path of the file.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn keep(url: &str, token: &str) -> Result<PathBuf> {
    let path = file()?;
    let file = SessionFile {
        url: Some(url.to_owned()),
        token: Some(token.to_owned()),
    };
    write(&path, &file)?;
    Ok(path)
}

/// Returns the stored address and credential if the credential is a session's: keys stay valid.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn kept_token() -> Result<Option<(String, String)>> {
    let file = read(&file()?)?;
    let session = file.token.filter(|token| is_session(token));
    Ok(file.url.zip(session))
}

/// Deletes the credential, and keeps the address. Returns whether there was a credential.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn forget() -> Result<bool> {
    let path = file()?;
    let mut file = read(&path)?;
    let was = file.token.take().is_some();
    if was {
        write(&path, &file)?;
    }
    Ok(was)
}

/// Returns an address as it is stored: with its scheme, and without a slash at its end.
///
/// # Errors
/// If it is not an address.
pub(crate) fn checked_url(text: &str) -> Result<String> {
    let wrong = || {
        Failure::usage(format!("`{text}` is not an address of a cloud"))
            .hint("it begins with `https://` or `http://`, such as https://cloud.example.com")
    };
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Returns whether a token is a session's that was created more than a day before `now` (seconds since 1970); keys are
/// never old.
pub(crate) fn is_old(token: &str, now: i64) -> bool {
    #[derive(Deserialize)]
    struct Claims {
        iat: i64,
    }
    let Some(claims) = token.split('.').nth(1) else {
        return false;
    };
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims);
    let claims = decoded
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Claims>(&bytes).ok());
    claims.is_some_and(|claims| now - claims.iat > 24 * 60 * 60)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn file() -> Result<PathBuf> {
    let folder = match (variable("XDG_CONFIG_HOME"), variable("HOME")) {
        (Some(folder), _) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
        (_, Some(home)) => PathBuf::from(home).join(".config"),
        _ => {
            return Err(Failure::failed("there is no place for the configuration")
                .hint("set HOME, or XDG_CONFIG_HOME"));
        }
    };
    Ok(folder.join("fleet/config.toml"))
}

fn read(path: &Path) -> Result<SessionFile> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(SessionFile::default());
        }
        Err(error) => return Err(Failure::unreadable(path, error)),
    };
    toml::from_str(&text).map_err(|error| {
        Failure::failed(format!("{} is not valid", path.display()))
            .because(error)
            .hint("correct it, or delete it and sign in again")
    })
}

fn write(path: &Path, session: &SessionFile) -> Result<()> {
    let failed = |error| Failure::unwritable(path, error);
    let text = toml::to_string(session)
        .map_err(|error| Failure::failed("the session cannot be written").because(error))?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
    }
    // A temporary file replaces it: always complete, and never readable by others.
    let mut beside = files::beside(path, 0o600).map_err(failed)?;
    let written = beside.write_all(text.as_bytes());
    let written = written.and_then(|()| beside.as_file().sync_all());
    written.map_err(failed)?;
    beside.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> SessionFile {
        SessionFile {
            url: Some("https://a".to_owned()),
            token: Some("t".to_owned()),
        }
    }

    #[test]
    fn the_environment_wins_and_a_token_is_shown_to_its_own_cloud_alone() {
        let own = |text: &str| Some(text.to_owned());
        for (url, token, expected) in [
            (None, None, Some(("https://a", "t"))),
            (own("https://a/"), None, Some(("https://a", "t"))),
            (own("https://b"), own("k"), Some(("https://b", "k"))),
            (None, own("k"), Some(("https://a", "k"))),
            (own("https://b"), None, None),
        ] {
            let session = Session::new(kept(), url.clone(), token);
            match (session, expected) {
                (Ok(session), Some((url, token))) => {
                    assert_eq!((session.url.as_str(), session.token.as_str()), (url, token));
                }
                (Err(failure), None) => assert_eq!(failure.kind, Kind::NotAllowed),
                (Ok(session), None) => panic!("{} at {}", session.token, session.url),
                (Err(failure), Some(_)) => panic!("{failure}"),
            }
        }
        let nobody = Session::new(SessionFile::default(), None, None);
        assert!(nobody.is_err_and(|failure| failure.kind == Kind::NotAllowed));
    }

    #[test]
    fn addresses_have_a_scheme_and_nothing_behind_the_path() {
        for (text, expected) in [
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("https://c.example/", Some("https://c.example")),
            ("https://c.example/cloud/", Some("https://c.example/cloud")),
            ("c.example", None),
            ("ftp://c.example", None),
            ("https://me@c.example", None),
            ("https://c.example?x", None),
        ] {
            assert_eq!(checked_url(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_sessions_get_old() {
        let token = |iat: i64| {
            let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
                .encode(format!("{{\"iat\":{iat}}}"));
            format!("h.{claims}.s")
        };
        assert!(is_old(&token(0), 100_000));
        assert!(!is_old(&token(99_000), 100_000));
        assert!(!is_old("0123456789abcdef", 100_000));
    }
}
