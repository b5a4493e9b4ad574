//! The rows of a release in the cloud, from `running` to its final status.

use registry_protocol::RepositoryName;
use serde::Deserialize;
use serde_json::{Value, json};

use super::compose::Composition;
use super::copy::Destination;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::odata::literal;
use crate::rows::Id;

/// The release to create.
pub(super) struct NewRelease<'a> {
    pub(super) fleet: i64,
    pub(super) composition: &'a Composition,
    pub(super) version: Option<String>,
    pub(super) is_final: bool,
    pub(super) note: Option<String>,
}

/// A release that is being created.
pub(super) struct Records<'a> {
    cloud: &'a Cloud,
    fleet: i64,
    pub(super) release: i64,
    pub(super) commit: String,
    /// The image whose blobs are being copied.
    current: Option<CurrentImage>,
    services: Vec<Value>,
}

struct CurrentImage {
    image: i64,
    service: String,
    location: String,
}

#[derive(Deserialize)]
struct Location {
    #[serde(rename = "is_stored_at__image_location")]
    location: String,
}

/// The field of a [`Location`].
const LOCATION: &str = "$select=is_stored_at__image_location";

impl<'a> Records<'a> {
    /// Creates the release.
    ///
    /// # Errors
    /// If the cloud refuses.
    pub(super) async fn begin(cloud: &'a Cloud, new: NewRelease<'_>) -> Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Failure::failed("the system has no random numbers").because(error))?;
        let commit = hex::encode(random);
        let mut body = json!({
            "belongs_to__application": new.fleet,
            "commit": commit,
            "composition": new.composition.value,
            "status": "running",
            "source": "local",
            "start_timestamp": now(),
            "is_final": new.is_final,
        });
        if let Some(version) = new.version {
            body["semver"] = json!(version);
        }
        if let Some(note) = new.note {
            body["note"] = json!(note);
        }
        Ok(Records {
            cloud,
            fleet: new.fleet,
            release: cloud.create("release", &body).await?,
            commit,
            current: None,
            services: Vec::new(),
        })
    }

    /// Creates the image of a service, and the service if it is new; returns the destination of the
    /// image.
    ///
    /// # Errors
    /// If the cloud refuses, or has no registry.
    pub(super) async fn image(&mut self, service: &str) -> Result<Destination> {
        let id = self.service(service).await?;
        let query = format!(
            "{LOCATION}&$filter=is_a_build_of__service eq {id} and status eq 'success'&$orderby=id desc&$top=1"
        );
        let before: Vec<Location> = self.cloud.rows("image", &query).await?;
        let body = json!({
            "is_a_build_of__service": id,
            "status": "running",
            "start_timestamp": now(),
        });
        let image = self.cloud.create("image", &body).await?;
        let path = format!("image({image})");
        let row: Option<Location> = self.cloud.row(&path, LOCATION).await?;
        let location = row.map(|row| row.location).unwrap_or_default();
        self.current = Some(CurrentImage {
            image,
            service: service.to_owned(),
            location: location.clone(),
        });
        let body = json!({ "image": image, "is_part_of__release": self.release });
        self.cloud.create("release_image", &body).await?;
        let place = RepositoryName::from_location(&location).ok_or_else(|| {
            Failure::failed(format!(
                "the cloud assigned `{location}` to the image, which is not a place in a registry"
            ))
        })?;
        if place.host == "registry.invalid" {
            return Err(Failure::failed("the cloud has no registry")
                .hint("its operator can set one: `fleet-cloud serve --registry HOST`"));
        }
        Ok(Destination {
            place,
            beside: before
                .iter()
                .filter_map(|row| RepositoryName::from_location(&row.location))
                .collect(),
        })
    }

    async fn service(&self, name: &str) -> Result<i64> {
        let query = format!(
            "$select=id&$filter=application eq {} and service_name eq {}",
            self.fleet,
            literal(name)
        );
        if let Some(service) = self.cloud.row::<Id>("service", &query).await? {
            return Ok(service.id);
        }
        let body = json!({ "application": self.fleet, "service_name": name });
        match self.cloud.create("service", &body).await {
            Ok(id) => Ok(id),
            // Somebody else may have created it in the meantime.
            Err(failure) => match self.cloud.row::<Id>("service", &query).await? {
                Some(service) => Ok(service.id),
                None => Err(failure),
            },
        }
    }

    /// Records that the current image is in its place, under this digest.
    ///
    /// # Errors
    /// If the cloud does not accept the request.
    pub(super) async fn pushed(&mut self, digest: &str, size: u64) -> Result<()> {
        let Some(current) = &self.current else {
            return Ok(());
        };
        let body = json!({
            "status": "success",
            "content_hash": digest,
            "image_size": size,
            "push_timestamp": now(),
            "end_timestamp": now(),
        });
        let path = format!("image({})", current.image);
        self.cloud.change(&path, &body).await?;
        self.services.push(json!({
            "service": current.service,
            "image": current.location,
            "content_hash": digest,
            "size": size,
        }));
        self.current = None;
        Ok(())
    }

    /// Records that all images are complete.
    ///
    /// # Errors
    /// If the cloud does not accept the release.
    pub(super) async fn succeeded(&self) -> Result<()> {
        let body = json!({ "status": "success", "end_timestamp": now() });
        self.cloud.change(&self.address(), &body).await
    }

    /// Returns the address of the release's row.
    fn address(&self) -> String {
        format!("release({})", self.release)
    }

    /// Records that the release failed or was stopped: no device receives it.
    ///
    /// # Errors
    /// If the cloud does not accept the request.
    pub(super) async fn failed(&self, failure: &Failure) -> Result<()> {
        let status = if failure.interrupted {
            "interrupted"
        } else {
            "failed"
        };
        let causes = [vec![failure.to_string()], failure.causes()]
            .concat()
            .join(": ");
        if let Some(current) = &self.current {
            let body = json!({ "status": status, "error_message": causes, "end_timestamp": now() });
            let path = format!("image({})", current.image);
            self.cloud.change(&path, &body).await?;
        }
        let body = json!({ "status": status, "build_log": causes, "end_timestamp": now() });
        self.cloud.change(&self.address(), &body).await
    }

    /// Returns whether the fleet's devices should run it.
    ///
    /// # Errors
    /// If the cloud does not say.
    pub(super) async fn is_followed(&self) -> Result<bool> {
        let query = format!(
            "$select=id&$filter=id eq {} and should_be_running__release eq {}",
            self.fleet, self.release
        );
        let fleet: Option<Id> = self.cloud.row("application", &query).await?;
        Ok(fleet.is_some())
    }

    /// Returns the JSON output.
    pub(super) fn summary(&self, version: &str, fleet: &str) -> Value {
        json!({
            "release": self.commit,
            "id": self.release,
            "version": version,
            "fleet": fleet,
            "services": self.services,
        })
    }
}

fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}
