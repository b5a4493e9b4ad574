//! The differences between an app of a target and its statement, in words.

use std::collections::BTreeMap;
use std::fmt::Display;

use model::{TargetApp, TargetRelease, TargetService};

use crate::statement::{compose, contract, digests, signed_app, signed_release};
use crate::{SignedService, Statement};

/// Returns every difference, as a sentence whose subject is the target.
pub(crate) fn differences(
    statement: &Statement,
    app: &TargetApp,
    release: &TargetRelease,
) -> Vec<String> {
    let mut all = Differences(Vec::new());
    let (signed, actual) = (&statement.app, signed_app(app));
    all.compare("the uuid of the app", &signed.uuid, &actual.uuid);
    all.compare("the number of the app", &signed.id, &actual.id);
    all.compare("the class of the app", &signed.class, &actual.class);
    if app.is_host {
        all.0
            .push("it has the app as the host's operating system".to_owned());
    }
    let (signed, actual) = (&statement.release, signed_release(release));
    all.compare("the release", &signed.commit, &actual.commit);
    all.compare("the number of the release", &signed.id, &actual.id);
    for (name, service) in &release.services {
        let name = name.as_str();
        match statement.services.get(name) {
            Some(signed) => all.compare_service(name, signed, service),
            None => all
                .0
                .push(format!("it has the service `{name}`, which is not signed")),
        }
    }
    for name in statement.services.keys() {
        if !release.services.keys().any(|other| other.as_str() == name) {
            all.0.push(format!("it lacks the service `{name}`"));
        }
    }
    let volumes = digests(&release.volumes);
    all.compare_maps("volume", "", &statement.volumes, &volumes);
    let networks = digests(&release.networks);
    all.compare_maps("network", "", &statement.networks, &networks);
    all.0
}

/// The differences found so far.
struct Differences(Vec<String>);

impl Differences {
    fn compare_service(&mut self, name: &str, signed: &SignedService, actual: &TargetService) {
        let of = format!(" of the service `{name}`");
        self.compare(&format!("the number{of}"), &signed.id, &actual.id.0);
        let number = format!("the number of the image{of}");
        self.compare(&number, &signed.image_id, &actual.image_id.0);
        let image = actual.image.to_string();
        self.compare(&format!("the image{of}"), &signed.image, &image);
        if !actual.running {
            self.0.push(format!("it has the service `{name}` stopped"));
        }
        self.compare_maps("label", &of, &signed.labels, &actual.labels);
        if signed.contract != contract(actual) {
            self.0
                .push(format!("the contract{of} differs from the signed one"));
        }
        self.compare_maps("compose field", &of, &signed.compose, &compose(actual));
        for variable in actual.environment.keys() {
            if !signed.variables.contains(variable) {
                self.0.push(format!(
                    "it sets the variable `{variable}`{of}, which the statement does not allow"
                ));
            }
        }
    }

    fn compare<T: PartialEq + Display>(&mut self, what: &str, signed: &T, actual: &T) {
        if signed != actual {
            self.0
                .push(format!("{what} is `{actual}`, but `{signed}` is signed"));
        }
    }

    fn compare_maps<T: PartialEq>(
        &mut self,
        what: &str,
        of: &str,
        signed: &BTreeMap<String, T>,
        actual: &BTreeMap<String, T>,
    ) {
        for (name, value) in actual {
            match signed.get(name) {
                None => self.0.push(format!(
                    "it has the {what} `{name}`{of}, which is not signed"
                )),
                Some(signed) if signed != value => {
                    self.0.push(format!(
                        "the {what} `{name}`{of} differs from the signed one"
                    ));
                }
                Some(_) => {}
            }
        }
        for name in signed.keys() {
            if !actual.contains_key(name) {
                self.0.push(format!("it lacks the {what} `{name}`{of}"));
            }
        }
    }
}
