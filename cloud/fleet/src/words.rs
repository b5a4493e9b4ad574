//! Names for people of the data API's fields, which its refusals mention.

/// Fields and resources of the API, with the names that this program uses.
const WORDS: &[(&str, &str)] = &[
    ("app_name", "name"),
    ("application", "fleet"),
    ("application_membership_role", "role"),
    ("application_tag", "tag"),
    ("application_config_variable", "variable"),
    ("application_environment_variable", "variable"),
    ("application_invite", "`fleet invitation create --fleet`"),
    ("asset", "file"),
    ("asset_key", "key"),
    ("belongs_to__application", "fleet"),
    ("device_config_variable", "variable"),
    ("device_environment_variable", "variable"),
    ("device_name", "name"),
    ("device_service_environment_variable", "variable"),
    ("device_tag", "tag"),
    ("email", "e-mail address"),
    ("expiryDate", "expiry date"),
    ("invalidation_reason", "reason"),
    ("invitee", "e-mail address"),
    ("is_final", "release"),
    ("is_for__device_type", "device type"),
    ("is_invited_to__application", "fleet"),
    ("is_invited_to__organization", "organization"),
    ("is_member_of__application", "fleet"),
    ("is_member_of__organization", "organization"),
    ("is_of__device_type", "device type"),
    ("is_pinned_on__release", "pinned release"),
    ("is_secret", "secret"),
    (
        "organization_invite",
        "`fleet invitation create --organization`",
    ),
    ("organization_membership_role", "role"),
    ("public_key", "SSH key"),
    ("release_asset", "file"),
    ("release_tag", "tag"),
    ("semver", "version"),
    ("service_environment_variable", "variable"),
    ("service_install", "service of the device"),
    ("should_be_running__release", "release of the fleet"),
    ("tag_key", "key"),
];

/// Rewords a refusal of the data API with names for people. Quotations from the request are kept unchanged.
pub(crate) fn in_words(refusal: &str) -> String {
    // The rest was entered by somebody, and may contain the name of a field.
    let (named, given) = match refusal.find(" must be ") {
        Some(at) => refusal.split_at(at),
        None => (refusal, ""),
    };
    let mut text = String::with_capacity(refusal.len());
    let mut rest = named;
    while let Some(begin) = rest.find(['`', '"']) {
        let quote = if rest[begin..].starts_with('`') {
            '`'
        } else {
            '"'
        };
        let inside = &rest[begin + 1..];
        let Some(end) = inside.find(quote) else {
            break;
        };
        let name = &inside[..end];
        text.push_str(&rest[..begin]);
        match WORDS.iter().find(|(field, _)| *field == name) {
            Some((_, word)) if word.starts_with('`') => text.push_str(word),
            Some((_, word)) => {
                text.push_str("the ");
                text.push_str(word);
            }
            None => text.push_str(&rest[begin..begin + end + 2]),
        }
        rest = &inside[end + 1..];
    }
    text.push_str(rest);
    text.push_str(given);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_api_are_called_as_people_call_them() {
        for (refusal, expected) in [
            (
                "`app_name` must be a name of letters, and `app_name` is not",
                "the name must be a name of letters, and `app_name` is not",
            ),
            (
                "\"device\" and \"tag_key\" must be unique.",
                "\"device\" and the key must be unique.",
            ),
            (
                "`is_pinned_on__release`: there is no `release` 7",
                "the pinned release: there is no `release` 7",
            ),
            ("`app_name` is required", "the name is required"),
            (
                "invite them by `organization_invite`",
                "invite them by `fleet invitation create --organization`",
            ),
            ("a `quote that does not end", "a `quote that does not end"),
            ("`handle` must be a handle", "`handle` must be a handle"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(in_words(refusal), expected);
        }
    }
}
