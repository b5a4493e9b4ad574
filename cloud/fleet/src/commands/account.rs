//! `register` and `password`. Passwords are entered without being shown or come from standard input. They are not
//! arguments, which other users of the machine could read.

use std::io::Read as _;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{organizations, people};
use crate::arguments::people::{Password, Register};
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;
use crate::session::{self, Session};

/// How to pass a password without a terminal.
const INSTEAD: &str = "a line on standard input, with `--stdin`";
/// The maximum number of bytes that are read from standard input.
const MOST_BYTES: u64 = 16 << 10;

/// A user as the API returns it.
#[derive(Deserialize, Serialize)]
struct NewUser {
    id: i64,
    username: String,
    email: Option<String>,
}

pub(crate) async fn register(register: Register, output: &Output) -> Result<()> {
    let url = people::address(register.url, "fleet register")?;
    people::warn_of_readers(&url, output);
    let session = session::at(&url)?;
    let cloud = Cloud::at(&url, session.map(|session| session.token))?;
    let organization = match &register.organization {
        Some(handle) => Some(organizations::meant(&cloud, Some(handle)).await?),
        None => None,
    };
    let username = ask::line(register.username, "User name", "`--username`")?;
    let email = ask::line(register.email, "E-mail address", "`--email`")?;
    let password = if register.stdin {
        lines::<1>(["the password"])?.concat()
    } else {
        twice("Password")?
    };
    let mut body = json!({ "username": username, "email": email, "password": password });
    if let Some(organization) = organization {
        body["organization"] = json!(organization.id);
    }
    let user: Result<NewUser> = cloud.post("/user/register", &body).await;
    let user = user.map_err(|failure| match (failure.kind, failure.is_duplicate()) {
        (Kind::NotAllowed, _) => {
            Failure::not_allowed(format!("only administrators of {url} can create accounts"))
                .hint("ask one of them, or sign in as one: `fleet login`")
        }
        (_, true) => Failure::failed("that name or e-mail address is already taken")
            .hint("choose another one; `fleet login` signs in with an existing account"),
        _ => failure,
    })?;
    let mut json = serde_json::to_value(&user).unwrap_or_default();
    if cloud.is_signed_in() {
        json["signed_in"] = json!(false);
        output.done(format!("created the account {}", user.username), &json);
        output.note(format!("`fleet login {url}` signs in with it"));
        return Ok(());
    }
    // Nobody was signed in there, so the new user is signed in.
    let token = people::session_token(&url, &user.username, &password).await?;
    let file = session::keep(&url, &token)?;
    json["signed_in"] = json!(true);
    output.done(
        format!(
            "created the account {}, and signed in at {url}; saved in {}",
            user.username,
            file.display()
        ),
        &json,
    );
    Ok(())
}

pub(crate) async fn password(cloud: &Cloud, output: &Output, password: Password) -> Result<()> {
    if !cloud.has_session() {
        return Err(Failure::not_allowed(
            "the credential is a key, and keys cannot change passwords",
        )
        .hint(format!(
            "sign in with the password: `fleet login {}`",
            cloud.url
        )));
    }
    let [current, new] = if password.stdin {
        lines(["the current password", "the new one"])?
    } else {
        [
            ask::secret("Current password", INSTEAD)?,
            twice("New password")?,
        ]
    };
    let body = json!({
        "currentPassword": current, "newPassword": new, "endKeys": password.end_keys,
    });
    let path = "/user/v1/change-password";
    let token = cloud.answer(Method::POST, path, Some(&body)).await;
    let token = token.map_err(|failure| match failure.kind {
        Kind::NotAllowed => Failure::not_allowed(
            "the current password is incorrect, or the session has ended; nothing was changed",
        )
        .hint(format!("`fleet login {}` signs in again", cloud.url)),
        _ => failure,
    })?;
    let token = String::from_utf8(token).unwrap_or_default();
    let is_kept = Session::current().is_ok_and(|session| session.kept);
    if is_kept {
        session::keep(&cloud.url, &token)?;
    }
    let keys = if password.end_keys {
        " and your keys"
    } else {
        ""
    };
    output.done(
        format!("changed the password; your other sessions{keys} have ended"),
        &json!({ "changed": true, "ended": { "sessions": true, "keys": password.end_keys } }),
    );
    if !is_kept {
        output.note("the session in FLEET_TOKEN has ended too; `fleet login` starts another");
    }
    Ok(())
}

/// Asks for a new password, which must be typed twice.
fn twice(what: &str) -> Result<String> {
    let first = ask::secret(what, INSTEAD)?;
    if ask::secret(&format!("{what} again"), INSTEAD)? == first {
        Ok(first)
    } else {
        Err(Failure::usage(
            "the two passwords differ; nothing was changed",
        ))
    }
}

/// Reads this many lines of standard input, without their line ends.
fn lines<const N: usize>(names: [&str; N]) -> Result<[String; N]> {
    let mut text = String::new();
    std::io::stdin()
        .take(MOST_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::failed("standard input cannot be read").because(error))?;
    in_lines(&text, names)
}

fn in_lines<const N: usize>(text: &str, names: [&str; N]) -> Result<[String; N]> {
    let hint = format!("give {}, one per line", names.join(" and "));
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, name) in names.iter().enumerate() {
        if lines.get(at).is_none_or(String::is_empty) {
            let message = format!("{name} is missing on standard input");
            return Err(Failure::usage(message).hint(hint));
        }
    }
    lines.try_into().map_err(|_| {
        Failure::usage("there are more lines on standard input than passwords").hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_lines_of_standard_input() {
        let names = ["the current password", "the new one"];
        for (text, expected) in [
            ("a b\nc\n", Some(["a b", "c"])),
            (" a \r\nc", Some([" a ", "c"])),
            ("a\n", None),
            ("a\n\n", None),
            ("", None),
            ("a\nb\nc\n", None),
        ] {
            let read = in_lines(text, names).ok();
            let expected = expected.map(|lines| lines.map(str::to_owned));
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
