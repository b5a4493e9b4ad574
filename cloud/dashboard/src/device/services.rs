//! The services that a device is to run, what it says of each, and their buttons.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{Device, actions};
use crate::live::LiveFragment;
use crate::problem::PageResult;
use crate::show::{self, badge, progress};
use crate::visitor::SessionUser;

#[derive(Deserialize)]
struct ServiceInstall {
    #[serde(rename = "installs__service")]
    services: Vec<Service>,
}

#[derive(Deserialize)]
struct Service {
    service_name: String,
}

#[derive(Deserialize)]
struct Install {
    id: i64,
    status: String,
    download_progress: Option<i64>,
    #[serde(rename = "installs__image")]
    images: Vec<Image>,
    #[serde(rename = "is_provided_by__release")]
    releases: Vec<Release>,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "is_a_build_of__service")]
    services: Vec<Service>,
}

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
}

impl Install {
    fn service(&self) -> &str {
        self.images
            .iter()
            .flat_map(|image| &image.services)
            .map(|service| service.service_name.as_str())
            .next()
            .unwrap_or_default()
    }
}

/// Services of a device that are shown.
const MOST: usize = 500;

/// As they are at this moment.
pub(super) async fn part(visitor: &SessionUser, device: &Device) -> PageResult<LiveFragment> {
    let query = format!(
        "$select=id&$expand=installs__service($select=service_name)&$filter=device eq {}&$top={MOST}",
        device.id
    );
    let targets: Vec<ServiceInstall> = visitor.rows("/service_install", &query).await?;
    let query = format!(
        "$select=id,status,download_progress&$filter=device eq {} and status ne 'deleted'&$orderby=id asc&$top={MOST}\
         &$expand=installs__image($select=id;$expand=is_a_build_of__service($select=service_name)),\
         is_provided_by__release($select=id,commit,raw_version)",
        device.id
    );
    let installs: Vec<Install> = visitor.rows("/image_install", &query).await?;
    let mut services: BTreeMap<&str, Vec<&Install>> = BTreeMap::new();
    for service in targets.iter().flat_map(|target| &target.services) {
        services.entry(&service.service_name).or_default();
    }
    for install in &installs {
        services.entry(install.service()).or_default().push(install);
    }
    Ok(LiveFragment::new("services", table(device, &services)))
}

fn table(device: &Device, services: &BTreeMap<&str, Vec<&Install>>) -> Markup {
    html! {
        @if services.is_empty() {
            p.empty { "This device has no services, because its fleet has no release for it yet." }
        } @else {
            table.rows {
                caption.hidden { "Services" }
                thead { tr {
                    th scope="col" { "Service" } th scope="col" { "State" } th scope="col" { "Release" }
                    th scope="col" { span.hidden { "Actions" } }
                } }
                tbody { @for (name, installs) in services { (row(device, name, installs)) } }
            }
        }
    }
}

fn row(device: &Device, name: &str, installs: &[&Install]) -> Markup {
    html! {
        tr id={ "service-" (name) } {
            th scope="row" { (name) }
            td data-label="State" {
                @if installs.is_empty() { span.none { "Not created yet" } }
                @for install in installs {
                    div.line-of { (state(&install.status))
                        @if let Some(percent) = install.download_progress {
                            " " (progress(&format!("Download of {name}"), percent))
                        }
                    }
                }
            }
            td data-label="Release" {
                @for install in installs {
                    div.line-of id={ "install-" (install.id) } {
                        @for release in &install.releases {
                            a href={ "/dashboard/releases/" (release.id) } {
                                (show::release_name(&release.commit, &release.raw_version))
                            }
                        }
                    }
                }
            }
            td.act { (actions::of_service(device, name)) }
        }
    }
}

/// What a device says of a service, in words for people.
fn state(status: &str) -> Markup {
    let kind = match status {
        "Running" | "running" => "good",
        "Downloading" | "Downloaded" | "Installing" | "Installed" | "Starting" | "Stopping"
        | "Handing over" | "Awaiting handover" | "Deleting" | "configuring" | "restarting"
        | "removing" => "busy",
        "Stopped" | "exited" | "paused" | "Idle" => "none",
        "Dead" => "bad",
        _ => "none",
    };
    badge(kind, status)
}
