//! The rows that a target state is made from, read by one statement.

use std::collections::{BTreeMap, HashMap};

use cloud_core::generation::fingerprint;
use data::{
    DataError, Database, Keyring, Place, Row, RowRight, Sql, SystemPurpose, UnreadableSecret,
};

/// All that a target state is made from, as it was at one moment.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// None in the state of a fleet for any device of it.
    pub(crate) device: Option<i64>,
    /// The device's actor.
    pub(crate) actor: Option<i64>,
    /// The number of its fleet.
    pub(crate) fleet: Option<i64>,
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// The device's own number of `data::generation`.
    of_device: i64,
    /// Those of the fleets that have one.
    of_fleets: HashMap<i64, i64>,
    /// Its fleet, and those of its supervisor and its operating system.
    pub(crate) apps: BTreeMap<AppRole, StateApp>,
    /// Of the fleet, then of the device; by level.
    pub(crate) config: BTreeMap<(i64, String), String>,
    /// By level (see [`Level`]), what they hang on, and name.
    pub(crate) variables: BTreeMap<(i64, i64), BTreeMap<String, String>>,
    /// The same of labels.
    pub(crate) labels: BTreeMap<(i64, i64), BTreeMap<String, String>>,
    /// Which of `config` and `variables` are secret.
    secrets: Vec<SecretVariable>,
}

/// Whether a state is for the devices that are to run it, or for people, to whom no secret is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretValues {
    Shown,
    Hidden,
}

/// What stands in place of a secret.
const MASK: &str = "(secret)";

/// Where the value of a secret variable stands.
#[derive(Debug)]
struct SecretVariable {
    id: i64,
    level: i64,
    /// What it hangs on; none of a setting.
    of: Option<i64>,
    name: String,
}

/// What an app is for a device. The later one wins where two are the same app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AppRole {
    Supervisor,
    System,
    Fleet,
}

/// Where a variable is said; the later one wins.
pub(crate) struct Level;

impl Level {
    /// Of `release_image`.
    pub(crate) const IMAGE: i64 = 1;
    /// Of `application`.
    pub(crate) const FLEET: i64 = 2;
    /// Of `service`.
    pub(crate) const SERVICE: i64 = 3;
    /// Of the device.
    pub(crate) const DEVICE: i64 = 4;
    /// Of a `service` on the device.
    pub(crate) const DEVICE_SERVICE: i64 = 5;
}

#[derive(Debug, Default)]
pub(crate) struct StateApp {
    pub(crate) id: i64,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) is_host: bool,
    pub(crate) release: Option<StateRelease>,
    /// By the name of the service.
    pub(crate) images: BTreeMap<String, StateImage>,
}

#[derive(Debug)]
pub(crate) struct StateRelease {
    pub(crate) id: i64,
    pub(crate) commit: String,
    /// JSON, whatever somebody built.
    pub(crate) composition: String,
    /// What its owner has signed of it, for devices alone to understand.
    pub(crate) signed_statement: Option<String>,
}

#[derive(Debug)]
pub(crate) struct StateImage {
    pub(crate) release_image: i64,
    pub(crate) id: i64,
    pub(crate) service: i64,
    pub(crate) location: String,
    pub(crate) hash: Option<String>,
    pub(crate) contract: Option<String>,
}

impl SecretVariable {
    fn table(&self) -> &'static str {
        match (self.of, self.level) {
            (None, Level::FLEET) => "application_config_variable",
            (None, _) => "device_config_variable",
            (Some(_), Level::IMAGE) => "image_environment_variable",
            (Some(_), Level::FLEET) => "application_environment_variable",
            (Some(_), Level::SERVICE) => "service_environment_variable",
            (Some(_), Level::DEVICE) => "device_environment_variable",
            (Some(_), _) => "device_service_environment_variable",
        }
    }
}

/// The statement for a `target`: one row with the device or fleet, and the releases that it is to run. Each
/// row of the answer is of a kind, four numbers and four texts. The third number of a secret variable is its id.
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
            "SELECT 0 AS kind, CAST(t.device AS BIGINT) AS n1, CAST(t.actor AS BIGINT) AS n2, \
             CAST(t.fleet AS BIGINT) AS n3, CAST(NULL AS BIGINT) AS n4, CAST(t.uuid AS TEXT) AS t1, \
             CAST(t.name AS TEXT) AS t2, CAST(NULL AS TEXT) AS t3, CAST(NULL AS TEXT) AS t4 FROM target AS t ",
            "UNION ALL SELECT 1, p.part, a.id, CASE WHEN a.is_host = TRUE THEN 1 ELSE 0 END, NULL, \
             a.uuid, a.app_name, a.is_of__class, NULL \
             FROM app AS p JOIN application AS a ON a.id = p.app ",
            "UNION ALL SELECT 2, p.part, r.id, NULL, NULL, r.\"commit\", r.composition, r.signed_statement, NULL \
             FROM app AS p JOIN release AS r ON r.id = p.release_id ",
            "UNION ALL SELECT 3, p.part, m.id, i.id, s.id, s.service_name, \
             i.is_stored_at__image_location, i.content_hash, i.contract \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image AS i ON i.id = m.image JOIN service AS s ON s.id = i.is_a_build_of__service ",
            "UNION ALL SELECT 4, 1, m.id, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image_environment_variable AS v ON v.release_image = m.id ",
            "UNION ALL SELECT 4, 2, p.app, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN application_environment_variable AS v ON v.application = p.app ",
            "UNION ALL SELECT 4, 3, s.id, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM app AS p JOIN service AS s ON s.application = p.app \
             JOIN service_environment_variable AS v ON v.service = s.id ",
            "UNION ALL SELECT 4, 4, 0, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN device_environment_variable AS v ON v.device = t.device ",
            "UNION ALL SELECT 4, 5, s.installs__service, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN service_install AS s ON s.device = t.device \
             JOIN device_service_environment_variable AS v ON v.service_install = s.id ",
            "UNION ALL SELECT 5, 1, m.id, NULL, NULL, l.label_name, l.value, NULL, NULL \
             FROM app AS p JOIN release_image AS m ON m.is_part_of__release = p.release_id \
             JOIN image_label AS l ON l.release_image = m.id ",
            "UNION ALL SELECT 5, 3, s.id, NULL, NULL, l.label_name, l.value, NULL, NULL \
             FROM app AS p JOIN service AS s ON s.application = p.app \
             JOIN service_label AS l ON l.service = s.id ",
            "UNION ALL SELECT 6, 2, NULL, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN application_config_variable AS v ON v.application = t.fleet ",
            "UNION ALL SELECT 6, 4, NULL, CASE WHEN v.is_secret = TRUE THEN v.id END, NULL, v.name, v.value, NULL, NULL \
             FROM target AS t JOIN device_config_variable AS v ON v.device = t.device ",
            "UNION ALL SELECT 7, g.generation, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
             FROM target AS t JOIN state_generation AS g ON g.kind = 'device' AND g.row_id = t.device ",
            "UNION ALL SELECT 8, g.generation, p.app, NULL, NULL, NULL, NULL, NULL, NULL \
             FROM (SELECT DISTINCT app FROM app) AS p \
             JOIN state_generation AS g ON g.kind = 'application' AND g.row_id = p.app"
        )
    };
}

/// What the state of a device is made from, found by what the text names.
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

/// Of the device with this uuid, for whoever turns out to have the right to it.
pub(crate) fn of_device(uuid: &str) -> Sql {
    let select = SystemPurpose::TargetState.sql(state_of_device!("d.uuid = ?"));
    select.with(uuid)
}

/// Of the device of this right.
pub(crate) fn of_device_with(right: &RowRight) -> Sql {
    right.sql(state_of_device!("d.id = ?"))
}

/// Of any device of the fleet of this right, with its target release.
pub(crate) fn of_fleet(right: &RowRight) -> Sql {
    right.sql(state_of!(
        "SELECT CAST(NULL AS BIGINT) AS device, CAST(NULL AS BIGINT) AS actor, a.id AS fleet, a.uuid AS uuid, \
         a.app_name AS name, a.should_be_running__release AS release_id, \
         CAST(NULL AS BIGINT) AS supervisor, CAST(NULL AS BIGINT) AS system \
         FROM application AS a WHERE a.id = ?"
    ))
}

/// Of any device of the fleet of this right that is to run this release.
pub(crate) fn of_fleet_with(right: &RowRight, release: i64) -> Sql {
    let select = right.sql(state_of!(
        "SELECT CAST(NULL AS BIGINT) AS device, CAST(NULL AS BIGINT) AS actor, a.id AS fleet, a.uuid AS uuid, \
         a.app_name AS name, r.id AS release_id, \
         CAST(NULL AS BIGINT) AS supervisor, CAST(NULL AS BIGINT) AS system \
         FROM application AS a JOIN release AS r ON r.belongs_to__application = a.id \
         WHERE a.id = ? AND r.id = ?"
    ));
    select.with(release)
}

impl Rows {
    /// What one of these statements finds; none where there is no such device or fleet.
    ///
    /// # Errors
    /// Where the database fails; where a secret is to be shown and cannot be read: a state without it would have the
    /// device start its services without it.
    pub(crate) async fn read(
        database: &Database,
        keyring: &Keyring,
        statement: &Sql,
        secret_values: SecretValues,
    ) -> Result<Option<Rows>, DataError> {
        let found = database.rows(statement).await?;
        let mut rows = Rows::default();
        let mut any = false;
        for row in &found {
            any |= row.id(0)? == 0;
            rows.take(row)?;
        }
        match secret_values {
            SecretValues::Shown => rows.open_secrets(keyring)?,
            SecretValues::Hidden => rows.hide_secrets(),
        }
        Ok(any.then_some(rows))
    }

    /// Whether any of it is for devices alone.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    fn open_secrets(&mut self, keyring: &Keyring) -> Result<(), UnreadableSecret> {
        let secrets = std::mem::take(&mut self.secrets);
        for secret in &secrets {
            let place = Place::of_row(secret.table(), "value", secret.id);
            if let Some(value) = self.value_of(secret) {
                *value = keyring.open(&place, value)?;
            }
        }
        self.secrets = secrets;
        Ok(())
    }

    fn hide_secrets(&mut self) {
        for secret in std::mem::take(&mut self.secrets) {
            if let Some(value) = self.value_of(&secret) {
                MASK.clone_into(value);
            }
        }
    }

    fn value_of(&mut self, variable: &SecretVariable) -> Option<&mut String> {
        let SecretVariable {
            level, of, name, ..
        } = variable;
        match of {
            None => self.config.get_mut(&(*level, name.clone())),
            Some(of) => self.variables.get_mut(&(*level, *of))?.get_mut(name),
        }
    }

    /// One row of the answer, in whatever order they come.
    fn take(&mut self, row: &Row) -> Result<(), DataError> {
        let number = |at| row.number(at).map(Option::unwrap_or_default);
        match row.id(0)? {
            0 => {
                self.device = row.number(1)?;
                self.actor = row.number(2)?;
                self.fleet = row.number(3)?;
                self.uuid = row.some_text(5)?;
                self.name = row.some_text(6)?;
            }
            1 => {
                let app = self.app(number(1)?);
                app.id = number(2)?;
                app.is_host = number(3)? == 1;
                app.uuid = row.some_text(5)?;
                app.name = row.some_text(6)?;
                app.class = row.some_text(7)?;
            }
            2 => {
                let release = StateRelease {
                    id: number(2)?,
                    commit: row.some_text(5)?,
                    composition: row.some_text(6)?,
                    signed_statement: row.text(7)?,
                };
                self.app(number(1)?).release = Some(release);
            }
            3 => {
                let image = StateImage {
                    release_image: number(2)?,
                    id: number(3)?,
                    service: number(4)?,
                    location: row.some_text(6)?,
                    hash: row.text(7)?,
                    contract: row.text(8)?,
                };
                let images = &mut self.app(number(1)?).images;
                let service = row.some_text(5)?;
                // Two images of one service in a release are a mistake; the later one is as good as any,
                // and always the same.
                match images.get(&service) {
                    Some(other) if other.id > image.id => {}
                    _ => {
                        images.insert(service, image);
                    }
                }
            }
            4 => {
                let (level, of, name) = (number(1)?, number(2)?, row.some_text(5)?);
                if let Some(id) = row.number(3)? {
                    self.secrets.push(SecretVariable {
                        id,
                        level,
                        of: Some(of),
                        name: name.clone(),
                    });
                }
                let of = self.variables.entry((level, of)).or_default();
                of.insert(name, row.some_text(6)?);
            }
            5 => {
                let of = self.labels.entry((number(1)?, number(2)?)).or_default();
                of.insert(row.some_text(5)?, row.some_text(6)?);
            }
            6 => {
                let (level, name) = (number(1)?, row.some_text(5)?);
                if let Some(id) = row.number(3)? {
                    self.secrets.push(SecretVariable {
                        id,
                        level,
                        of: None,
                        name: name.clone(),
                    });
                }
                self.config.insert((level, name), row.some_text(6)?);
            }
            7 => self.of_device = number(1)?,
            _ => {
                self.of_fleets.insert(number(2)?, number(1)?);
            }
        }
        Ok(())
    }

    /// What all of this was made from (`data::generation`), in one number.
    pub(crate) fn fingerprint(&self) -> i64 {
        let of_fleet = |app: &StateApp| self.of_fleets.get(&app.id).copied().unwrap_or_default();
        let of_fleets = self.apps.values().map(|app| (app.id, of_fleet(app)));
        fingerprint(self.of_device, &of_fleets.collect())
    }

    fn app(&mut self, part: i64) -> &mut StateApp {
        let part = match part {
            1 => AppRole::Supervisor,
            2 => AppRole::System,
            _ => AppRole::Fleet,
        };
        self.apps.entry(part).or_default()
    }
}
