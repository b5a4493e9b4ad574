//! The services that a device should run, what it reports about each, and their buttons.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::actions;
use super::tabs::Device;
use crate::live::LiveFragment;
use crate::page_error::PageResult;
use crate::rows::{ReleaseName, ServiceName};
use crate::session_user::SessionUser;
use crate::show::{badge, progress, table};

#[derive(Deserialize)]
struct TargetService {
    #[serde(rename = "installs__service")]
    services: Vec<ServiceName>,
}

#[derive(Deserialize)]
struct ImageInstall {
    id: i64,
    status: String,
    download_progress: Option<i64>,
    #[serde(rename = "installs__image")]
    images: Vec<InstalledImage>,
    #[serde(rename = "is_provided_by__release")]
    releases: Vec<ReleaseName>,
}

#[derive(Deserialize)]
struct InstalledImage {
    #[serde(rename = "is_a_build_of__service")]
    services: Vec<ServiceName>,
}

impl ImageInstall {
    fn service(&self) -> &str {
        self.images
            .iter()
            .flat_map(|image| &image.services)
            .map(|service| service.service_name.as_str())
            .next()
            .unwrap_or_default()
    }
}

/// The maximum number of services that are shown.
const MOST: usize = 500;

/// The current services.
pub(super) async fn part(user: &SessionUser, device: &Device) -> PageResult<LiveFragment> {
    let query = format!(
        "$select=id&$expand=installs__service($select=id,service_name)&$filter=device eq {}&$top={MOST}",
        device.id
    );
    let targets: Vec<TargetService> = user.rows("/service_install", &query).await?;
    let query = format!(
        "$select=id,status,download_progress&$filter=device eq {} and status ne 'deleted'&$orderby=id asc&$top={MOST}\
         &$expand=installs__image($select=id;$expand=is_a_build_of__service($select=id,service_name)),\
         is_provided_by__release($select=id,commit,raw_version)",
        device.id
    );
    let installs: Vec<ImageInstall> = user.rows("/image_install", &query).await?;
    let mut services: BTreeMap<&str, Vec<&ImageInstall>> = BTreeMap::new();
    for service in targets.iter().flat_map(|target| &target.services) {
        services.entry(&service.service_name).or_default();
    }
    for install in &installs {
        services.entry(install.service()).or_default().push(install);
    }
    let rows = services
        .iter()
        .map(|(name, installs)| row(device, name, installs));
    let markup = html! {
        @if services.is_empty() {
            p.empty { "This device has no services, because its fleet has no release for it yet." }
        } @else {
            (table("Services", &["Service", "State", "Release"], Some("Actions"), rows))
        }
    };
    Ok(LiveFragment::new("services", markup))
}

fn row(device: &Device, name: &str, installs: &[&ImageInstall]) -> Markup {
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
                        @for release in &install.releases { (release.link()) }
                    }
                }
            }
            td.act { (actions::render_service(device, name)) }
        }
    }
}

/// Shows the status that a device reports for a service, in words for people.
fn state(status: &str) -> Markup {
    let kind = match status {
        "Running" | "running" => "good",
        "Downloading" | "Downloaded" | "Installing" | "Installed" | "Starting" | "Stopping"
        | "Handing over" | "Awaiting handover" | "Deleting" | "configuring" | "restarting"
        | "removing" => "busy",
        "Dead" => "bad",
        // Among others: stopped, exited, paused, idle.
        _ => "none",
    };
    badge(kind, status)
}
