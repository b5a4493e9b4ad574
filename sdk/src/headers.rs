//! Header fields of a request or a response.

/// Header fields in the order in which they arrived. Names are in lower case; a repeated field
/// occurs several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub(crate) Vec<(String, Vec<u8>)>);

impl Headers {
    /// Returns the first value of `name` (in lower case), if there is one and it is text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.bytes(name)
            .and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns the first value of `name` (in lower case), in its original bytes.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// Iterates over all fields.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the type of the body without its parameters, in lower case: `application/json`.
    pub(crate) fn content_type(&self) -> Option<String> {
        let value = self.get("content-type")?;
        let essence = value.split(';').next().unwrap_or(value).trim();
        Some(essence.to_ascii_lowercase())
    }

    /// Returns the encoding of the body's characters, in lower case, if the request names one.
    pub(crate) fn charset(&self) -> Option<String> {
        let parameters = self.get("content-type")?.split(';').skip(1);
        let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
        let (_, charset) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
        Some(charset.trim().trim_matches('"').to_ascii_lowercase())
    }
}
