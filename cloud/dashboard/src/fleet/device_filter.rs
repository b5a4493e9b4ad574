//! The filter for the devices of a fleet, and their order.

use crate::data::literal;
use crate::form::Form;
use crate::show::STATUSES;

/// The possible orders: in the address, as the API expects it, and for people.
pub(super) const ORDERS: [(&str, &str, &str); 5] = [
    ("name", "device_name asc", "Name"),
    ("status", "overall_status asc,device_name asc", "Status"),
    ("seen", "last_connectivity_event desc", "Last seen"),
    (
        "release",
        "is_running__release/commit asc,device_name asc",
        "Release",
    ),
    ("newest", "created_at desc", "Newest"),
];

/// A filter for devices.
#[derive(Debug, Clone)]
pub(super) struct DeviceFilter {
    pub(super) search: String,
    pub(super) status: &'static str,
    pub(super) tag: String,
    pub(super) order: &'static str,
    /// The page number, from 0.
    pub(super) page: usize,
}

impl DeviceFilter {
    pub(super) fn from_search(search: &Form) -> Self {
        let order = search.text("sort");
        let order = ORDERS.iter().find(|(name, _, _)| *name == order);
        let status = search.text("status");
        let status = STATUSES.iter().find(|(state, ..)| *state == status);
        DeviceFilter {
            search: search.text("search").chars().take(100).collect(),
            status: status.map_or("", |(state, ..)| state),
            tag: search.text("tag").chars().take(200).collect(),
            order: order.map_or("name", |(name, _, _)| name),
            page: search
                .text("page")
                .parse::<usize>()
                .unwrap_or_default()
                .min(100_000),
        }
    }

    pub(super) fn is_anything(&self) -> bool {
        !(self.search.is_empty() && self.status.is_empty() && self.tag.is_empty())
    }

    /// Returns the filter as the query of an address.
    pub(super) fn query(&self, page: usize) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("search", &self.search)
            .append_pair("status", self.status)
            .append_pair("tag", &self.tag)
            .append_pair("sort", self.order)
            .append_pair("page", &page.to_string())
            .finish()
    }

    pub(super) fn filter(&self, fleet: i64) -> String {
        let mut filter = format!("belongs_to__application eq {fleet}");
        if !self.search.is_empty() {
            let text = literal(&self.search.to_lowercase());
            filter.push_str(&format!(
                " and (contains(tolower(device_name),{text}) or startswith(uuid,{text}) \
                 or device_tag/any(t:contains(tolower(t/tag_key),{text}) or contains(tolower(t/value),{text})))"
            ));
        }
        if !self.status.is_empty() {
            filter.push_str(&format!(" and overall_status eq {}", literal(self.status)));
        }
        if !self.tag.is_empty() {
            let condition = match self.tag.split_once('=') {
                None => format!("t/tag_key eq {}", literal(self.tag.trim())),
                Some((key, value)) => format!(
                    "t/tag_key eq {} and t/value eq {}",
                    literal(key.trim()),
                    literal(value.trim())
                ),
            };
            filter.push_str(&format!(" and device_tag/any(t:{condition})"));
        }
        filter
    }

    pub(super) fn order_by(&self) -> &'static str {
        let order = ORDERS.iter().find(|(name, _, _)| *name == self.order);
        order.map_or("device_name asc", |(_, by, _)| by)
    }
}
