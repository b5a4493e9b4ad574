//! The owners of rows according to the model, up to their organization: a variable belongs to a device, which belongs
//! to a fleet, which belongs to an organization.

use resources::Type;

/// A link from the rows of a table to their owners.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnerLink {
    table: &'static str,
    /// The column of the link.
    pub(crate) column: &'static str,
}

/// Returns the links that lead from the rows of a resource to their organization, in order; empty for organizations.
/// `first` names the first link if the model declares none. `None` if they do not lead to an organization.
pub(crate) fn links_to_organization(resource: &str, first: Option<&str>) -> Option<Vec<OwnerLink>> {
    let mut resource = resources::v7().resource(resource)?;
    let mut first = first;
    let mut links = Vec::new();
    while resource.name != "organization" {
        let field = resource.fields.iter().find(|field| match first {
            Some(name) => field.name == name,
            None => field.belongs,
        })?;
        let Type::Link { to, .. } = field.kind else {
            return None;
        };
        links.push(OwnerLink {
            table: resource.table,
            column: field.name,
        });
        resource = resources::v7().resource(to)?;
        first = None;
    }
    Some(links)
}

/// Returns the organization that links lead to from the row with the number `id`; both are SQL expressions.
pub(crate) fn organization_of(links: &[OwnerLink], id: &str) -> String {
    links.iter().fold(id.to_owned(), |id, link| {
        let OwnerLink { table, column } = link;
        format!("(SELECT \"{column}\" FROM \"{table}\" WHERE id = {id})")
    })
}

/// Returns an SQL condition for rows of the first table whose links lead to this organization.
pub(crate) fn is_of_organization(links: &[OwnerLink], organization: &str) -> String {
    let mut is_one = format!("= {organization}");
    for (at, link) in links.iter().enumerate().rev() {
        let OwnerLink { table, column } = link;
        is_one = match at {
            0 => format!("\"{column}\" {is_one}"),
            _ => format!("IN (SELECT id FROM \"{table}\" WHERE \"{column}\" {is_one})"),
        };
    }
    is_one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_an_organization_and_back() {
        let links = links_to_organization("image_label", None).unwrap();
        assert_eq!(
            organization_of(&links, "7"),
            "(SELECT \"organization\" FROM \"application\" WHERE id = \
             (SELECT \"belongs_to__application\" FROM \"release\" WHERE id = \
             (SELECT \"is_part_of__release\" FROM \"release_image\" WHERE id = \
             (SELECT \"release_image\" FROM \"image_label\" WHERE id = 7))))"
        );
        assert_eq!(
            is_of_organization(&links, "7"),
            "\"release_image\" IN (SELECT id FROM \"release_image\" WHERE \"is_part_of__release\" IN \
             (SELECT id FROM \"release\" WHERE \"belongs_to__application\" IN \
             (SELECT id FROM \"application\" WHERE \"organization\" = 7)))"
        );
        let team = links_to_organization("team_membership", Some("is_member_of__team")).unwrap();
        assert_eq!(
            organization_of(&team[1..], "t.\"is_member_of__team\""),
            "(SELECT \"belongs_to__organization\" FROM \"team\" WHERE id = t.\"is_member_of__team\")"
        );
        assert!(
            links_to_organization("organization", None)
                .unwrap()
                .is_empty()
        );
        assert!(links_to_organization("device_type", None).is_none());
        assert!(links_to_organization("team_membership", Some("user")).is_none());
    }
}
