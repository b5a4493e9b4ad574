//! The statement that reads all inputs of a target state.

use data::{RowRight, Sql, SystemPurpose};

/// The statement for a `target`: one row with the device or fleet, and the releases that it should run. Each row of the
/// result consists of a kind (`RowKind` in `rows.rs`), four numbers and four texts. The third number of a secret
/// variable is its id.
macro_rules! state_of {
    ($target:expr) => {
        concat!(
            "WITH target AS (", $target, "), ",
            "app AS (",
            "SELECT 1 AS part, r.belongs_to__application AS app, r.id AS release_id FROM target AS t \
             JOIN release AS r ON r.id = t.supervisor \
             UNION ALL SELECT 2, r.belongs_to__application, r.id FROM target AS t \
             JOIN release AS r ON r.id = t.system \
             UNION ALL SELECT 3, t.fleet, t.release_id FROM target AS t WHERE t.fleet IS NOT NULL) ",
            "SELECT 1 AS kind, CAST(t.device AS BIGINT) AS n1, CAST(t.actor AS BIGINT) AS n2, \
             CAST(t.fleet AS BIGINT) AS n3, CAST(NULL AS BIGINT) AS n4, CAST(t.uuid AS TEXT) AS t1, \
             CAST(t.name AS TEXT) AS t2, CAST(NULL AS TEXT) AS t3, CAST(NULL AS TEXT) AS t4 FROM target AS t ",
            "UNION ALL SELECT 2, p.part, a.id, CASE WHEN a.is_host = TRUE THEN 1 ELSE 0 END, NULL, \
             a.uuid, a.app_name, a.is_of__class, NULL \
             FROM app AS p JOIN application AS a ON a.id = p.app ",
            "UNION ALL SELECT 3, p.part, r.id, NULL, NULL, r.\"commit\", r.composition, r.signed_statement, NULL \
             FROM app AS p JOIN release AS r ON r.id = p.release_id ",
            "UNION ALL SELECT 4, p.part, m.id, i.id, s.id, s.service_name, \
             i.is_stored_at__image_location, i.content_hash, i.contract \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image AS i ON i.id = m.image JOIN service AS s ON s.id = i.is_a_build_of__service ",
            "UNION ALL SELECT 5, 1, m.id, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image_environment_variable AS v ON v.release_image = m.id ",
            "UNION ALL SELECT 5, 2, p.app, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN application_environment_variable AS v ON v.application = p.app ",
            "UNION ALL SELECT 5, 3, s.id, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN service AS s ON s.application = p.app \
             JOIN service_environment_variable AS v ON v.service = s.id ",
            "UNION ALL SELECT 5, 4, 0, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN device_environment_variable AS v ON v.device = t.device ",
            "UNION ALL SELECT 5, 5, s.installs__service, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN service_install AS s ON s.device = t.device \
             JOIN device_service_environment_variable AS v ON v.service_install = s.id ",
            "UNION ALL SELECT 6, 1, m.id, NULL, NULL, l.label_name, l.value, NULL, NULL \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image_label AS l ON l.release_image = m.id ",
            "UNION ALL SELECT 6, 3, s.id, NULL, NULL, l.label_name, l.value, NULL, NULL \
             FROM app AS p JOIN service AS s ON s.application = p.app \
             JOIN service_label AS l ON l.service = s.id ",
            "UNION ALL SELECT 5, 2, NULL, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN application_config_variable AS v ON v.application = t.fleet ",
            "UNION ALL SELECT 5, 4, NULL, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN device_config_variable AS v ON v.device = t.device ",
            "UNION ALL SELECT 7, g.generation, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
             FROM target AS t JOIN state_generation AS g ON g.kind = 'device' AND g.row_id = t.device ",
            "UNION ALL SELECT 8, g.generation, p.app, NULL, NULL, NULL, NULL, NULL, NULL \
             FROM (SELECT DISTINCT app FROM app) AS p \
             JOIN state_generation AS g ON g.kind = 'application' AND g.row_id = p.app"
        )
    };
}

/// The statement for the state of a device that the condition selects.
macro_rules! state_of_device {
    ($by:literal) => {
        state_of!(concat!(
            "SELECT d.id AS device, d.actor AS actor, a.id AS fleet, d.uuid AS uuid, d.device_name AS name, \
             coalesce(d.is_pinned_on__release, a.should_be_running__release) AS release_id, \
             d.should_be_managed_by__release AS supervisor, d.should_be_operated_by__release AS system \
             FROM device AS d LEFT JOIN application AS a ON a.id = d.belongs_to__application WHERE ",
            $by
        ))
    };
}

/// Selects the device with this uuid, before the caller's right to it is known.
pub(crate) fn select_device(uuid: &str) -> Sql {
    let select = SystemPurpose::TargetState.sql(state_of_device!("d.uuid = ?"));
    select.with(uuid)
}

/// Selects the device of this right.
pub(crate) fn select_permitted_device(right: &RowRight) -> Sql {
    right.sql(state_of_device!("d.id = ?"))
}

/// Selects any device of the fleet of this right, with its target release.
pub(crate) fn select_fleet(right: &RowRight) -> Sql {
    right.sql(state_of!(
        "SELECT CAST(NULL AS BIGINT) AS device, CAST(NULL AS BIGINT) AS actor, a.id AS fleet, a.uuid AS uuid, \
         a.app_name AS name, a.should_be_running__release AS release_id, \
         CAST(NULL AS BIGINT) AS supervisor, CAST(NULL AS BIGINT) AS system \
         FROM application AS a WHERE a.id = ?"
    ))
}

/// Selects any device of the fleet of this right that should run this release.
pub(crate) fn select_fleet_with_release(right: &RowRight, release: i64) -> Sql {
    let select = right.sql(state_of!(
        "SELECT CAST(NULL AS BIGINT) AS device, CAST(NULL AS BIGINT) AS actor, a.id AS fleet, a.uuid AS uuid, \
         a.app_name AS name, r.id AS release_id, \
         CAST(NULL AS BIGINT) AS supervisor, CAST(NULL AS BIGINT) AS system \
         FROM application AS a JOIN release AS r ON r.belongs_to__application = a.id \
         WHERE a.id = ? AND r.id = ?"
    ));
    select.with(release)
}
