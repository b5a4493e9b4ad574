//! Answers to requests of the query language, from real databases.

mod access;
mod alike;
mod answers;
mod everything;
mod large;
mod letter_case;
mod variants;

use data::query::{Caller, QueryContext, QueryError, ReadStatement, read};
use data::{Database, Dialect};
use resources::{Model, Role, v7};
use serde_json::Value;

use super::fixture::MADE;

static TUNNEL: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
    let branding = resources::Branding::default();
    branding.variables("SUPERVISOR_VPN_CONTROL").collect()
});

pub(crate) fn ann() -> Caller {
    user(1)
}

pub(crate) fn bob() -> Caller {
    user(2)
}

fn user(id: i64) -> Caller {
    Caller::Holder {
        role: Role::User,
        actor: Some(10 + id),
        user: Some(id),
    }
}

pub(crate) fn setting(caller: &Caller, dialect: Dialect) -> QueryContext<'_> {
    QueryContext {
        model: v7(),
        dialect,
        caller,
        // A day after everything was created.
        now: MADE + 86_400_000,
        addresses: "/v7",
        always_addressed: false,
        lenient: false,
        tunnel_variables: &TUNNEL,
        origin: "https://cloud.example.com",
    }
}

/// Splits a request into path and query.
pub(crate) fn split(url: &str) -> (&str, Option<&str>) {
    let mut quoted = false;
    for (at, c) in url.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '?' if !quoted => return (&url[..at], Some(&url[at + 1..])),
            _ => {}
        }
    }
    (url, None)
}

/// Returns the answer to a GET: the rows, or a number.
pub(crate) async fn get(
    database: &Database,
    caller: &Caller,
    url: &str,
) -> Result<Value, QueryError> {
    get_as(v7(), database, caller, url).await
}

/// Returns the answer to a GET of an older version.
pub(crate) async fn get_as(
    model: &'static Model,
    database: &Database,
    caller: &Caller,
    url: &str,
) -> Result<Value, QueryError> {
    let (path, query) = split(url);
    let request = odata::parse(path, query).map_err(QueryError::Refused)?;
    let setting = QueryContext {
        model,
        ..setting(caller, database.dialect())
    };
    let statement = read(&setting, &request)?;
    let failed = |error: data::DataError| panic!("{url}: {error:?}");
    Ok(match statement {
        ReadStatement::Records(select) => {
            let rows = database.texts(&select).await.unwrap_or_else(failed);
            let rows = rows.into_iter().map(|row| {
                let row = row.expect("a row's text");
                serde_json::from_str(&row).unwrap_or_else(|error| panic!("{url}: {error}: {row}"))
            });
            Value::Array(rows.collect())
        }
        ReadStatement::Count(select) => {
            let row = database
                .row(&select)
                .await
                .unwrap_or_else(|error| panic!("{url}: {error:?}"));
            Value::from(row.expect("a row").id(0).expect("a number"))
        }
        ReadStatement::Metadata => Value::Null,
    })
}
