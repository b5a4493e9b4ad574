//! What a user reads, changes and requests from devices: API requests made on their behalf, within the program.

use axum::response::Response;
use cloud_core::answer::Refusal;
use cloud_core::tunnels::proxy;
use data::RowRight;
use data::query::{self, ReadStatement};
use data::write::{Verb, Write, WriteOutcome, write};
use http::Uri;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use resources::{Method, Version};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::page_error::{PageError, PageResult};
use super::session_user::SessionUser;

/// The maximum size in bytes of the rows that a page reads: a page that requests more has a bug, and reports an error.
const MOST: usize = 16 << 20;

/// Returns text as a constant of the query language (`'it''s'`), percent-encoded: whatever somebody typed into a search
/// cannot become anything else.
pub(crate) fn literal(text: &str) -> String {
    let quoted = format!("'{}'", text.replace('\'', "''"));
    utf8_percent_encode(&quoted, NON_ALPHANUMERIC).to_string()
}

impl SessionUser {
    /// Sends a request to devices through the proxy as the user, and returns their answer; `whom` is as in the
    /// proxy's body (`uuid`, `deviceId` or `appId`).
    ///
    /// # Errors
    /// As `POST /supervisor/<path>` answers.
    pub(crate) async fn ask(
        &self,
        path: &str,
        whom: (&str, Value),
        data: Value,
    ) -> Result<Response, Refusal> {
        self.pass_on(path, whom, ("data", data)).await
    }

    /// Sends a GET request to devices, like [`SessionUser::ask`].
    ///
    /// # Errors
    /// As `POST /supervisor/<path>` answers.
    pub(crate) async fn look_up(
        &self,
        path: &str,
        whom: (&str, Value),
    ) -> Result<Response, Refusal> {
        self.pass_on(path, whom, ("method", "GET".into())).await
    }

    async fn pass_on(
        &self,
        path: &str,
        whom: (&str, Value),
        more: (&str, Value),
    ) -> Result<Response, Refusal> {
        let address: Uri = format!("/supervisor{path}")
            .parse()
            .map_err(|error: http::uri::InvalidUri| Refusal::Fault(error.into()))?;
        let fields = [whom, more].map(|(name, value)| (name.to_owned(), value));
        let body = Map::from_iter(fields);
        proxy::pass_on(self.cloud.clone(), &self.identity, &address, &body).await
    }

    /// Returns the rows of `GET /v7<path>?<query>`, as this user sees them. Spaces in the query need no encoding; text
    /// from people must go through [`literal`].
    ///
    /// # Errors
    /// If the API refuses the request, or the database fails.
    pub(crate) async fn rows<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> PageResult<Vec<T>> {
        let ReadStatement::Records(select) = self.statement(path, query)? else {
            return Err(broken(format!("{path} lists no rows")));
        };
        let texts = self.cloud.database_of(self.caller()).texts(&select).await?;
        let length: usize = texts.iter().flatten().map(String::len).sum();
        if length > MOST {
            return Err(broken(format!(
                "{path} has {length} bytes, more than {MOST}"
            )));
        }
        texts
            .iter()
            .flatten()
            .map(|text| {
                serde_json::from_str(text)
                    .map_err(|error| broken(format!("a row of {path}: {error}")))
            })
            .collect()
    }

    /// Returns the one row of `GET /v7<path>?<query>`.
    ///
    /// # Errors
    /// 404 if this user sees no such row; otherwise as [`SessionUser::rows`].
    pub(crate) async fn row<T: DeserializeOwned>(&self, path: &str, query: &str) -> PageResult<T> {
        let rows = self.rows(path, query).await?;
        rows.into_iter().next().ok_or_else(PageError::nothing_here)
    }

    /// Returns the count of `GET /v7<path>/$count?<query>`.
    ///
    /// # Errors
    /// As [`SessionUser::rows`].
    pub(crate) async fn count(&self, path: &str, query: &str) -> PageResult<i64> {
        let path = format!("{path}/$count");
        let ReadStatement::Count(select) = self.statement(&path, query)? else {
            return Err(broken(format!("{path} counts nothing")));
        };
        let row = self.cloud.database_of(self.caller()).row(&select).await?;
        Ok(row.map_or(Ok(0), |row| row.id(0))?)
    }

    /// Builds the statement of `GET /v7<path>?<query>`.
    fn statement(&self, path: &str, query: &str) -> PageResult<ReadStatement> {
        let query = encoded(query);
        let request = odata::parse(path, query.as_deref())?;
        let setting = self.cloud.setting(self.caller());
        Ok(query::read(&setting, &request)?)
    }

    /// Returns the right of this user to do this with the row of an id, if they have it.
    ///
    /// # Errors
    /// If the database fails.
    pub(crate) async fn right(
        &self,
        resource: &str,
        id: i64,
        method: Method,
    ) -> PageResult<Option<RowRight>> {
        let setting = self.cloud.setting(self.caller());
        let database = self.cloud.database_of(self.caller());
        let right = database.right(&setting, resource, id, method).await;
        right.map_err(|error| PageError(error.into()))
    }

    /// Changes rows as `POST`, `PATCH`, `PUT` or `DELETE /v7<path>?<query>` with this body would.
    ///
    /// # Errors
    /// If the API refuses the change, or the database fails; then nothing is changed.
    pub(crate) async fn change(
        &self,
        verb: Verb,
        path: &str,
        query: &str,
        body: Value,
    ) -> PageResult<WriteOutcome> {
        let query = encoded(query);
        let query = query.as_deref();
        let request = odata::parse(path, query)?;
        let body = match body {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        let change = Write {
            version: Version::V7,
            verb,
            request: &request,
            body: &body,
            file: None,
        };
        let setting = self.cloud.setting(self.caller());
        let database = self.cloud.database_of(self.caller());
        Ok(write(&database, &self.cloud.environment, setting, change).await?)
    }

    /// Changes the one row at `path` (`/device(7)`).
    ///
    /// # Errors
    /// 404 if the row does not exist or this user may not change it; otherwise as [`SessionUser::change`].
    pub(crate) async fn patch(&self, path: &str, body: Value) -> PageResult<()> {
        some(self.change(Verb::Patch, path, "", body).await?)
    }

    /// Deletes the one row at `path`.
    ///
    /// # Errors
    /// As [`SessionUser::patch`].
    pub(crate) async fn delete(&self, path: &str) -> PageResult<()> {
        some(self.change(Verb::Delete, path, "", Value::Null).await?)
    }

    /// Creates a row of a resource (`/application`) and returns its id.
    ///
    /// # Errors
    /// As [`SessionUser::change`].
    pub(crate) async fn create(&self, path: &str, body: Value) -> PageResult<i64> {
        match self.change(Verb::Post, path, "", body).await? {
            WriteOutcome::Created { id, .. } => Ok(id),
            WriteOutcome::Changed(_) => Err(broken(format!("{path} made no row"))),
        }
    }
}

fn some(written: WriteOutcome) -> PageResult<()> {
    match written {
        WriteOutcome::Changed(0) => Err(PageError::nothing_here()),
        WriteOutcome::Changed(_) | WriteOutcome::Created { .. } => Ok(()),
    }
}

/// Returns a query percent-encoded for an address, if there is one.
fn encoded(query: &str) -> Option<String> {
    (!query.is_empty()).then(|| query.replace(' ', "%20"))
}

fn broken(why: String) -> PageError {
    PageError(Refusal::Fault(anyhow::anyhow!(why)))
}
