//! The progress of a pull, from the messages that the engine sends for each layer. Pure.

use std::collections::HashMap;

use bollard::models::CreateImageInfo;

/// More layers than any image has; messages about further ones are ignored.
const MAX_LAYERS: usize = 1024;

/// The layers of one image, each in the state of its last message.
#[derive(Debug, Default)]
pub(super) struct LayerProgress {
    layers: HashMap<String, Layer>,
    highest: u8,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Layer {
    /// Bytes; 0 until a message contains the size.
    size: u64,
    /// From 0 to 1.
    downloaded: f64,
    /// From 0 to 1.
    extracted: f64,
}

/// The share of the transfer in the work for a layer; the rest is its extraction.
const DOWNLOAD_SHARE: f64 = 0.8;

impl LayerProgress {
    /// Returns whether the message shows progress. Engines repeat earlier messages, and announce attempts that they are
    /// about to make: neither is progress.
    pub(super) fn note(&mut self, message: &CreateImageInfo) -> bool {
        let (Some(id), Some(status)) = (&message.id, &message.status) else {
            return false;
        };
        let bytes = |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok()).unwrap_or(0);
        let detail = message.progress_detail.as_ref();
        let current = detail.map_or(0, |detail| bytes(detail.current));
        let total = detail.map_or(0, |detail| bytes(detail.total));
        let part = if total == 0 {
            0.0
        } else {
            (current as f64 / total as f64).min(1.0)
        };
        let layer_before = self.layers.get(id).copied();
        if layer_before.is_none() && self.layers.len() >= MAX_LAYERS {
            return false;
        }
        let mut layer = layer_before.unwrap_or_default();
        match status.as_str() {
            "Pulling fs layer" | "Waiting" => {}
            "Downloading" => {
                layer.size = total;
                layer.downloaded = part;
            }
            "Verifying Checksum" | "Download complete" => layer.downloaded = 1.0,
            "Extracting" => {
                layer.size = layer.size.max(total);
                (layer.downloaded, layer.extracted) = (1.0, part);
            }
            "Pull complete" | "Already exists" => (layer.downloaded, layer.extracted) = (1.0, 1.0),
            // `Pulling from …` has the tag as its id.
            _ => return false,
        }
        self.layers.insert(id.clone(), layer) != Some(layer)
    }

    /// Returns 0 to 99, never decreasing: only the end of the pull is 100. A layer of unknown size
    /// counts as one of the average size.
    pub(super) fn percent(&mut self) -> u8 {
        let sizes = self.layers.values().filter(|layer| layer.size > 0);
        let (count, sum) = sizes.fold((0_u32, 0.0), |(count, sum), layer| {
            (count + 1, sum + layer.size as f64)
        });
        let average = if count == 0 {
            1.0
        } else {
            sum / f64::from(count)
        };
        let (mut all, mut done) = (0.0, 0.0);
        for layer in self.layers.values() {
            let size = if layer.size > 0 {
                layer.size as f64
            } else {
                average
            };
            all += size;
            done += size
                * (DOWNLOAD_SHARE * layer.downloaded + (1.0 - DOWNLOAD_SHARE) * layer.extracted);
        }
        if all > 0.0 {
            let percent = (100.0 * done / all).clamp(0.0, 99.0) as u8;
            self.highest = self.highest.max(percent);
        }
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    fn after(messages: &[(&str, &str, i64, i64)]) -> Vec<u8> {
        let mut progress = LayerProgress::default();
        messages
            .iter()
            .map(|(id, status, current, total)| {
                progress.note(&CreateImageInfo {
                    id: Some((*id).into()),
                    status: Some((*status).into()),
                    progress_detail: Some(ProgressDetail {
                        current: Some(*current),
                        total: Some(*total),
                    }),
                    ..Default::default()
                });
                progress.percent()
            })
            .collect()
    }

    #[test]
    fn layers_count_by_their_bytes() {
        let percents = after(&[
            ("latest", "Pulling from shop/web", 0, 0),
            ("a", "Pulling fs layer", 0, 0),
            ("b", "Pulling fs layer", 0, 0),
            ("a", "Downloading", 300, 300),
            ("b", "Downloading", 0, 100),
            ("a", "Extracting", 300, 300),
            ("b", "Download complete", 0, 0),
            ("b", "Pull complete", 0, 0),
        ]);
        assert_eq!(percents, [0, 0, 0, 40, 60, 75, 95, 99]);
    }

    #[test]
    fn only_new_messages_are_progress() {
        let mut progress = LayerProgress::default();
        let mut note = |status: &str, current| {
            progress.note(&CreateImageInfo {
                id: Some("a".into()),
                status: Some(status.into()),
                progress_detail: Some(ProgressDetail {
                    current: Some(current),
                    total: Some(100),
                }),
                ..Default::default()
            })
        };
        for (status, current, expected) in [
            ("Pulling from shop/web", 0, false),
            ("Pulling fs layer", 0, true),
            ("Waiting", 0, false),
            ("Downloading", 10, true),
            ("Downloading", 10, false),
            ("Downloading", 11, true),
            ("Retrying in 5 seconds", 0, false),
            ("Download complete", 0, true),
            ("Extracting", 1, true),
            ("Extracting", 1, false),
            ("Pull complete", 0, true),
        ] {
            assert_eq!(note(status, current), expected, "{status} {current}");
        }
    }

    #[test]
    fn progress_never_falls_when_sizes_become_known() {
        let percents = after(&[
            ("a", "Pulling fs layer", 0, 0),
            ("a", "Downloading", 9, 10),
            ("b", "Pulling fs layer", 0, 0),
            ("b", "Downloading", 1, 1_000_000),
            ("b", "Downloading", -5, -1),
        ]);
        assert!(percents.is_sorted(), "{percents:?}");
    }

    #[test]
    fn layers_that_exist_already_are_done() {
        assert_eq!(after(&[("a", "Already exists", 0, 0)]), [99]);
    }
}
