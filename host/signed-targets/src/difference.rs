//! Where an app of a target is not what its statement says, in words.

use std::collections::BTreeMap;
use std::fmt::Display;

use model::{TargetApp, TargetRelease, TargetService};

use crate::statement::{compose, contract, digests, signed_app, signed_release};
use crate::{SignedService, Statement};

/// Every difference, as a sentence whose subject is the target.
pub(crate) fn differences(
    statement: &Statement,
    app: &TargetApp,
    release: &TargetRelease,
) -> Vec<String> {
    let mut found = Vec::new();
    let (said, is) = (&statement.app, signed_app(app));
    differ(&mut found, "the uuid of the app", &said.uuid, &is.uuid);
    differ(&mut found, "the number of the app", &said.id, &is.id);
    differ(&mut found, "the class of the app", &said.class, &is.class);
    if app.is_host {
        found.push("it has the app as the host's operating system".to_owned());
    }
    let (said, is) = (&statement.release, signed_release(release));
    differ(&mut found, "the release", &said.commit, &is.commit);
    differ(&mut found, "the number of the release", &said.id, &is.id);
    for (name, service) in &release.services {
        let name = name.as_str();
        match statement.services.get(name) {
            Some(said) => in_service(&mut found, name, said, service),
            None => found.push(format!("it has the service `{name}`, which is not signed")),
        }
    }
    for name in statement.services.keys() {
        if !release.services.keys().any(|other| other.as_str() == name) {
            found.push(format!("it lacks the service `{name}`"));
        }
    }
    let volumes = digests(&release.volumes);
    in_map(&mut found, "volume", "", &statement.volumes, &volumes);
    let networks = digests(&release.networks);
    in_map(&mut found, "network", "", &statement.networks, &networks);
    found
}

fn in_service(found: &mut Vec<String>, name: &str, said: &SignedService, is: &TargetService) {
    let of = format!(" of the service `{name}`");
    differ(found, &format!("the number{of}"), &said.id, &is.id.0);
    let number = format!("the number of the image{of}");
    differ(found, &number, &said.image_id, &is.image_id.0);
    let image = is.image.to_string();
    differ(found, &format!("the image{of}"), &said.image, &image);
    if !is.running {
        found.push(format!("it has the service `{name}` stopped"));
    }
    in_map(found, "label", &of, &said.labels, &is.labels);
    if said.contract != contract(is) {
        found.push(format!("the contract{of} differs from the signed one"));
    }
    in_map(found, "compose field", &of, &said.compose, &compose(is));
    for variable in is.environment.keys() {
        if !said.variables.contains(variable) {
            found.push(format!(
                "it sets the variable `{variable}`{of}, which the statement does not allow"
            ));
        }
    }
}

fn differ<T: PartialEq + Display>(found: &mut Vec<String>, what: &str, said: &T, is: &T) {
    if said != is {
        found.push(format!("{what} is `{is}`, but `{said}` is signed"));
    }
}

fn in_map<T: PartialEq>(
    found: &mut Vec<String>,
    what: &str,
    of: &str,
    said: &BTreeMap<String, T>,
    is: &BTreeMap<String, T>,
) {
    for (name, value) in is {
        match said.get(name) {
            None => found.push(format!(
                "it has the {what} `{name}`{of}, which is not signed"
            )),
            Some(said) if said != value => {
                found.push(format!(
                    "the {what} `{name}`{of} differs from the signed one"
                ));
            }
            Some(_) => {}
        }
    }
    for name in said.keys() {
        if !is.contains_key(name) {
            found.push(format!("it lacks the {what} `{name}`{of}"));
        }
    }
}
