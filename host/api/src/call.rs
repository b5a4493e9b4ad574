//! What a handler gets: the request, who makes it, and what its path stands for.

use std::borrow::Cow;

use crate::auth::Caller;
use crate::device::Request;

/// One admitted request on a core route.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    /// What the `:name` segments of the route's path stand for, percent-decoded.
    pub(crate) params: Vec<String>,
    pub(crate) request: Request,
}

impl Call {
    /// The value of a query parameter; the last one if it is repeated.
    pub(crate) fn query(&self, name: &str) -> Option<Cow<'_, str>> {
        let query = self.request.uri().query()?;
        form_urlencoded::parse(query.as_bytes())
            .filter(|(found, _)| found == name)
            .last()
            .map(|(_, value)| value)
    }

    /// The first `:name` segment of the path, percent-decoded.
    pub(crate) fn segment(&self) -> &str {
        self.params.first().map_or("", String::as_str)
    }
}
