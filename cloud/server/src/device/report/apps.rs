//! What a device reports about the apps that it runs.

use cloud_core::answer::Refusal;
use serde_json::{Map, Value};

/// Maximum number of images in one report.
const MOST: usize = 1000;

/// The words for the state of an update, the most important first.
const UPDATE_STATES: [&str; 6] = [
    "rejected",
    "aborted",
    "downloading",
    "downloaded",
    "applying changes",
    "done",
];

/// The reported apps of a device.
#[derive(Debug, Default)]
pub(super) struct Apps {
    pub(super) releases: Vec<ReportedRelease>,
    /// By the uuid of the app: the release that the device reports as running.
    pub(super) running: Vec<(String, String)>,
}

/// How an app is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReportedApp {
    /// By its uuid.
    Uuid(String),
    /// The device's own app.
    Own,
}

#[derive(Debug)]
pub(super) struct ReportedRelease {
    pub(super) app: ReportedApp,
    pub(super) name: RowName,
    /// The index in [`UPDATE_STATES`].
    pub(super) update: Option<usize>,
    pub(super) images: Vec<ReportedImage>,
}

/// How a release or an image is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowName {
    /// A release by its commit, an image by its location without its hash.
    Text(String),
    Id(i64),
}

/// An image on the device.
#[derive(Debug)]
pub(super) struct ReportedImage {
    pub(super) name: RowName,
    /// None if it is unknown or not reported.
    pub(super) status: Option<&'static str>,
    /// Percent.
    pub(super) progress: Option<i64>,
}

impl Apps {
    /// Parses `apps` of version 3: by uuid, commit and name of the service.
    pub(super) fn read(apps: &Value) -> Result<Self, Refusal> {
        let mut read = Apps::default();
        for (uuid, app) in object(apps, "apps")? {
            let app = object(app, "an app")?;
            if let Some(commit) = text(app, "release_uuid")? {
                read.running.push((uuid.clone(), commit.to_owned()));
            }
            let Some(releases) = present(app, "releases") else {
                continue;
            };
            for (commit, release) in object(releases, "releases")? {
                let release = object(release, "a release")?;
                let mut images = Vec::new();
                if let Some(services) = present(release, "services") {
                    for service in object(services, "services")?.values() {
                        images.push(image(object(service, "a service")?)?);
                    }
                }
                read.releases.push(ReportedRelease {
                    app: ReportedApp::Uuid(uuid.clone()),
                    name: RowName::Text(commit.clone()),
                    update: text(release, "update_status")?.and_then(update_state),
                    images,
                });
            }
        }
        read.bounded()
    }

    pub(super) fn bounded(self) -> Result<Self, Refusal> {
        let images: usize = self
            .releases
            .iter()
            .map(|release| release.images.len())
            .sum();
        if images <= MOST && self.releases.len() <= MOST && self.running.len() <= MOST {
            Ok(self)
        } else {
            Err(Refusal::Wrong(format!(
                "more than {MOST} releases or images"
            )))
        }
    }

    /// Returns the state of an app's update: the most important one of its releases.
    pub(super) fn update_status(
        &self,
        is_it: impl Fn(&ReportedApp) -> bool,
    ) -> Option<&'static str> {
        let of_it = self.releases.iter().filter(|release| is_it(&release.app));
        let first = of_it.filter_map(|release| release.update).min()?;
        UPDATE_STATES.get(first).copied()
    }
}

fn update_state(word: &str) -> Option<usize> {
    UPDATE_STATES.iter().position(|state| *state == word)
}

fn image(service: &Map<String, Value>) -> Result<ReportedImage, Refusal> {
    let Some(image) = text(service, "image")? else {
        return Err(Refusal::Wrong(
            "`image` of a service is required".to_owned(),
        ));
    };
    let location = image.split('@').next().unwrap_or_default().to_owned();
    Ok(ReportedImage {
        name: RowName::Text(location),
        status: text(service, "status")?.and_then(status),
        progress: progress(service)?,
    })
}

/// Parses `download_progress`, in percent.
pub(super) fn progress(service: &Map<String, Value>) -> Result<Option<i64>, Refusal> {
    match present(service, "download_progress") {
        None => Ok(None),
        Some(Value::Number(number)) => {
            let percent = number.as_f64().unwrap_or_default().clamp(0.0, 100.0);
            #[expect(clippy::cast_possible_truncation, reason = "it is at most 100")]
            let percent = percent.round() as i64;
            Ok(Some(percent))
        }
        Some(_) => Err(Refusal::Wrong(
            "`download_progress` must be a number".to_owned(),
        )),
    }
}

/// Returns the value of `image_install.status` for a word.
pub(super) fn status(word: &str) -> Option<&'static str> {
    let field = resources::v7()
        .resource("image_install")?
        .find_field("status")?;
    match field.kind {
        resources::Type::Word(words) => words.iter().copied().find(|one| *one == word),
        _ => None,
    }
}

pub(super) fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, Refusal> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::Wrong(format!("{what} must be an object"))),
    }
}

/// Returns a field that is present and not null.
pub(super) fn present<'a>(of: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    of.get(name).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(of: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match present(of, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::Wrong(format!("`{name}` must be text"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_of_an_update_is_the_first_reported_one() {
        let release = |state: &str| json!({ "update_status": state });
        let apps = json!({
            "a": { "releases": { "c1": release("done"), "c2": release("downloading"), "c3": release("new") } },
            "b": { "releases": { "c4": release("rejected") } },
        });
        let apps = Apps::read(&apps).unwrap();
        assert_eq!(
            apps.update_status(|which| *which == ReportedApp::Uuid("a".to_owned())),
            Some("downloading")
        );
        assert_eq!(apps.update_status(|which| *which == ReportedApp::Own), None);
    }

    #[test]
    fn images_are_known_by_their_location_and_odd_words_are_dropped() {
        let apps = json!({ "a": { "release_uuid": "c1", "releases": { "c1": { "services": {
            "x": { "image": "registry/v2/ab@sha256:1", "status": "Running", "download_progress": 33.6 },
            "y": { "image": "registry/v2/cd", "status": "Dancing", "download_progress": null },
        } } } } });
        let apps = Apps::read(&apps).unwrap();
        let images = &apps.releases[0].images;
        assert_eq!(images[0].name, RowName::Text("registry/v2/ab".to_owned()));
        assert_eq!(
            (images[0].status, images[0].progress),
            (Some("Running"), Some(34))
        );
        assert_eq!((images[1].status, images[1].progress), (None, None));
        assert_eq!(apps.running, [("a".to_owned(), "c1".to_owned())]);
    }

    #[test]
    fn other_types_are_refused() {
        for apps in [
            json!([]),
            json!({ "a": 1 }),
            json!({ "a": { "release_uuid": 1 } }),
            json!({ "a": { "releases": [] } }),
            json!({ "a": { "releases": { "c": { "services": [] } } } }),
            json!({ "a": { "releases": { "c": { "services": { "x": {} } } } } }),
            json!({ "a": { "releases": { "c": { "services": { "x": { "image": "i", "status": 1 } } } } } }),
            json!({ "a": { "releases": { "c": { "services": { "x": { "image": "i", "download_progress": "1" } } } } } }),
        ] {
            assert!(Apps::read(&apps).is_err(), "{apps}");
        }
    }
}
