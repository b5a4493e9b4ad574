//! The image of an index that a fleet's devices run.

use registry_client::{Index, IndexEntry};
use serde::Deserialize;

use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::rows;

/// A processor architecture, by its name in the cloud and in images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Platform {
    slug: String,
    architecture: &'static str,
    /// The variants that it can run, the best first; an image without a variant comes last.
    variants: &'static [&'static str],
}

/// Returns the platform of a fleet's devices.
///
/// # Errors
/// If no images exist for the architecture of the fleet's device type.
pub(super) async fn find_for_fleet(cloud: &Cloud, fleet: i64) -> Result<Platform> {
    #[derive(Deserialize)]
    struct Fleet {
        #[serde(rename = "is_for__device_type", deserialize_with = "rows::first")]
        kind: Option<Kind>,
    }
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "is_of__cpu_architecture", deserialize_with = "rows::slug")]
        architecture: Option<String>,
    }
    let query = "$select=id\
        &$expand=is_for__device_type($select=id;$expand=is_of__cpu_architecture($select=slug))";
    let path = format!("application({fleet})");
    let fleet: Option<Fleet> = cloud.row(&path, query).await?;
    let kind = fleet.and_then(|fleet| fleet.kind);
    let slug = kind.and_then(|kind| kind.architecture).unwrap_or_default();
    Platform::named(&slug).ok_or_else(|| {
        Failure::failed(format!(
            "no images are known for the architecture `{slug}` of the fleet"
        ))
        .hint("`--all-platforms` copies the images for all platforms")
    })
}

impl Platform {
    fn named(slug: &str) -> Option<Self> {
        let (architecture, variants): (_, &'static [&'static str]) = match slug {
            "rpi" => ("arm", &["v6", "v5"]),
            "armv7hf" => ("arm", &["v7", "v6", "v5"]),
            "aarch64" => ("arm64", &["v8"]),
            "amd64" => ("amd64", &["v1"]),
            "i386" | "i386-nlp" => ("386", &[]),
            _ => return None,
        };
        Some(Platform {
            slug: slug.to_owned(),
            architecture,
            variants,
        })
    }

    /// Chooses the entry of an index for this processor; a WebAssembly component runs on any.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn choose<'a>(&self, index: &'a Index) -> Result<&'a IndexEntry> {
        let rank = |listed: &IndexEntry| {
            let platform = listed.platform.as_ref()?;
            if platform.architecture == "wasm" {
                return Some(usize::MAX);
            }
            if platform.os != "linux" || platform.architecture != self.architecture {
                return None;
            }
            match platform.variant.as_deref() {
                None | Some("") => Some(self.variants.len()),
                Some(variant) => self.variants.iter().position(|own| *own == variant),
            }
        };
        let best = index
            .manifests
            .iter()
            .filter_map(|listed| Some((rank(listed)?, listed)))
            .min_by_key(|(rank, _)| *rank);
        if let Some((_, listed)) = best {
            return Ok(listed);
        }
        // An index with a single entry and no platform stands for that entry.
        if let [only] = index.manifests.as_slice()
            && only.platform.is_none()
        {
            return Ok(only);
        }
        let others: Vec<String> = index
            .manifests
            .iter()
            .filter_map(|listed| listed.platform.as_ref())
            .filter(|platform| platform.os != "unknown")
            .map(ToString::to_string)
            .collect();
        Err(Failure::failed(format!(
            "that name has no image for the fleet's processors ({})",
            self.slug
        ))
        .hint(format!("it has images for {}", others.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_best_image_for_a_processor_is_chosen() {
        let entry = |name: char, os: &str, architecture: &str, variant: &str| {
            json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
                "digest": format!("sha256:{}", name.to_string().repeat(64)),
                "platform": { "os": os, "architecture": architecture, "variant": variant },
            })
        };
        let index = json!({ "manifests": [
            entry('0', "unknown", "unknown", ""),
            entry('1', "windows", "amd64", ""),
            entry('2', "linux", "amd64", ""),
            entry('3', "linux", "arm", "v6"),
            entry('4', "linux", "arm", "v7"),
            entry('5', "linux", "arm64", "v8"),
        ] });
        let index: Index = serde_json::from_value(index).expect("an index");
        for (slug, expected) in [
            ("amd64", Some('2')),
            ("rpi", Some('3')),
            ("armv7hf", Some('4')),
            ("aarch64", Some('5')),
            ("i386", None),
        ] {
            let platform = Platform::named(slug).expect(slug);
            let chosen = platform
                .choose(&index)
                .ok()
                .and_then(|one| one.blob.digest.chars().last());
            assert_eq!(chosen, expected, "{slug}");
        }
        let failure = Platform::named("i386")
            .expect("it")
            .choose(&index)
            .expect_err("none");
        assert!(
            failure
                .hint
                .is_some_and(|hint| hint.contains("linux/arm/v7"))
        );
        assert_eq!(Platform::named("z80"), None);
    }
}
