//! The administrator who creates the simulation's fleet, through the cloud's API.

use anyhow::{Context as _, Result, bail};
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};

use crate::cloud::{EMAIL, PASSWORD};

/// A user who may create fleets at a cloud.
#[derive(Debug, Clone)]
pub struct Admin {
    url: String,
    token: String,
    client: reqwest::Client,
}

/// A fleet of one service.
#[derive(Debug, Clone)]
pub struct Fleet {
    admin: Admin,
    /// Its number.
    pub id: i64,
    service: i64,
    board: String,
}

impl Admin {
    /// The user with this token or key.
    #[must_use]
    pub fn with_token(url: &str, token: &str) -> Self {
        // A client uses the existing provider; an error means that there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Admin {
            url: url.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            client: reqwest::Client::new(),
        }
    }

    /// Signs in as the administrator of a [`Cloud`](crate::Cloud).
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn sign_in(url: &str) -> Result<Self> {
        let mut admin = Admin::with_token(url, "");
        let login = json!({ "username": EMAIL, "password": PASSWORD });
        let login = admin.client.post(format!("{url}/login_")).json(&login);
        let answer = login.send().await?.error_for_status()?;
        admin.token = answer.text().await?;
        Ok(admin)
    }

    /// Returns the address of the cloud, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A request with the token.
    pub fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.bearer_auth(&self.token)
    }

    /// Sends a request, and returns the JSON of the answer; null if it is not JSON.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn answer(&self, request: RequestBuilder) -> Result<Value> {
        let answer = request.send().await?;
        let (status, path) = (answer.status(), answer.url().path().to_owned());
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("the cloud answered {status} to `{path}`: {text}");
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Returns the rows of a GET of the data API.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn rows(&self, path: &str) -> Result<Vec<Value>> {
        let mut answer = self.answer(self.ask(Method::GET, path)).await?;
        match answer["d"].take() {
            Value::Array(rows) => Ok(rows),
            other => bail!("the cloud answered `{other}` to `{path}`"),
        }
    }

    /// Creates a row; returns its number.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn create(&self, resource: &str, row: Value) -> Result<i64> {
        let request = self
            .ask(Method::POST, &format!("/v7/{resource}"))
            .json(&row);
        let made = self.answer(request).await?;
        made["id"]
            .as_i64()
            .with_context(|| format!("no `{resource}` was made"))
    }

    /// Changes a row.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn change(&self, resource: &str, id: i64, fields: Value) -> Result<()> {
        let path = format!("/v7/{resource}({id})");
        let request = self.ask(Method::PATCH, &path).json(&fields);
        self.answer(request).await.map(drop)
    }

    /// Creates a fleet for this type of board, in the first organization.
    ///
    /// # Errors
    /// If the cloud refuses it, or has no such board.
    pub async fn fleet(&self, name: &str, board: &str) -> Result<Fleet> {
        let organizations = self.rows("/v7/organization?$select=id&$top=1").await?;
        let organization = organizations.first().context("there is no organization")?;
        let path = format!("/v7/device_type(slug='{board}')?$select=id");
        let boards = self.rows(&path).await?;
        let device_type = boards
            .first()
            .with_context(|| format!("the catalogue has no board `{board}`"))?;
        let fleet = json!({
            "app_name": name, "organization": organization["id"], "is_for__device_type": device_type["id"],
        });
        let id = self.create("application", fleet).await?;
        let service = json!({ "application": id, "service_name": "main" });
        Ok(Fleet {
            service: self.create("service", service).await?,
            admin: self.clone(),
            id,
            board: board.to_owned(),
        })
    }
}

impl Fleet {
    /// Creates a release that is not finished yet. `number` is its number, starting at 1; returns its commit and its
    /// id.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn release(&self, number: u32) -> Result<(String, i64)> {
        let admin = &self.admin;
        let began = format!(
            "2025-01-01T{:02}:{:02}:00.000Z",
            number / 60 % 24,
            number % 60
        );
        let commit = format!("{:08x}{number:024x}", self.id);
        let image = json!({
            "is_a_build_of__service": self.service, "status": "success", "start_timestamp": began,
            "push_timestamp": began, "content_hash": format!("sha256:{number:064x}"),
        });
        let image = admin.create("image", image).await?;
        let release = json!({
            "belongs_to__application": self.id, "commit": commit, "status": "running", "source": "cloud",
            "composition": { "version": "2.1", "services": { "main": {} } }, "start_timestamp": began,
        });
        let release = admin.create("release", release).await?;
        let part = json!({ "image": image, "is_part_of__release": release });
        admin.create("release_image", part).await?;
        Ok((commit, release))
    }

    /// Finishes a release, so that devices run it from now on.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn finish(&self, release: i64) -> Result<()> {
        let ready = json!({ "status": "success" });
        self.admin.change("release", release, ready).await
    }

    /// Pins all its devices to a release.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn pin(&self, release: i64) -> Result<()> {
        let path = format!(
            "/v7/device?$filter=belongs_to__application%20eq%20{}",
            self.id
        );
        let pin = json!({ "is_pinned_on__release": release });
        let request = self.admin.ask(Method::PATCH, &path).json(&pin);
        self.admin.answer(request).await.map(drop)
    }

    /// Counts its devices that match a filter; all of them without one.
    ///
    /// # Errors
    /// If the cloud refuses it.
    pub async fn count(&self, filter: &str) -> Result<usize> {
        let path = format!(
            "/v7/device/$count?$filter=belongs_to__application%20eq%20{}{filter}",
            self.id
        );
        let counted = self.admin.ask(Method::GET, &path);
        let counted = self.admin.answer(counted).await?;
        let number = counted["d"].as_u64().or(counted.as_u64());
        let number = number.with_context(|| format!("`{path}` counts nothing: {counted}"))?;
        Ok(usize::try_from(number)?)
    }

    /// Returns the config.json of its devices, without the parts that differ by device.
    ///
    /// # Errors
    /// If the cloud returned no key.
    pub async fn config(&self) -> Result<Map<String, Value>> {
        let path = format!("/api-key/application/{}/provisioning", self.id);
        let key = self.admin.ask(Method::POST, &path).json(&json!({}));
        let key = self.admin.answer(key).await?;
        let config = json!({
            "applicationId": self.id, "deviceType": self.board, "apiEndpoint": self.admin.url, "apiKey": key,
        });
        match config {
            Value::Object(config) => Ok(config),
            other => bail!("`{other}` is no configuration"),
        }
    }
}
