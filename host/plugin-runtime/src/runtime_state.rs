//! State that all plugins share.

use std::sync::Arc;

use crate::linker::Linkers;
use crate::pool::Pool;
use crate::warm_pool::WarmPool;

/// State that all plugins share.
pub(crate) struct RuntimeState {
    pub(crate) pool: Arc<Pool>,
    pub(crate) warm_pool: WarmPool,
    pub(crate) linkers: Linkers,
}
