//! The open log streams of devices, a few for each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::bounds::LOG_STREAMS;

/// The open streams, by device, the oldest first.
#[derive(Default)]
pub(crate) struct Uploads {
    open: Arc<Mutex<ByDevice>>,
}

type ByDevice = HashMap<i64, VecDeque<(u64, CancellationToken)>>;

/// One open stream, until it is dropped.
pub(super) struct OpenUpload {
    device: i64,
    number: u64,
    end: CancellationToken,
    open: Arc<Mutex<ByDevice>>,
}

impl Uploads {
    /// Opens another stream of a device. If it has too many, the oldest ends.
    pub(super) fn open(&self, device: i64) -> OpenUpload {
        let end = CancellationToken::new();
        let mut open = self.open.lock();
        let streams = open.entry(device).or_default();
        let number = streams.back().map_or(0, |(last, _)| last + 1);
        streams.push_back((number, end.clone()));
        if streams.len() > LOG_STREAMS
            && let Some((_, oldest)) = streams.pop_front()
        {
            oldest.cancel();
        }
        OpenUpload {
            device,
            number,
            end,
            open: self.open.clone(),
        }
    }
}

impl OpenUpload {
    /// Returns when newer streams have replaced this one.
    pub(super) async fn replaced(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(streams) = open.get_mut(&self.device) {
            streams.retain(|(number, _)| *number != self.number);
            if streams.is_empty() {
                open.remove(&self.device);
            }
        }
    }
}
