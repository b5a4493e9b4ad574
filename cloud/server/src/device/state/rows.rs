//! The rows of a target state, as read by one statement (`statement.rs`).

use std::collections::{BTreeMap, HashMap};

use cloud_core::cloud::Cloud;
use cloud_core::generation::fingerprint;
use data::{DataError, Keyring, Row, SecretLocation, Sql, UnreadableSecret};
use strum::VariantArray;

/// All inputs of a target state, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// None in the state for any device of a fleet.
    pub(crate) device: Option<i64>,
    /// The device's actor.
    pub(crate) actor: Option<i64>,
    /// The number of its fleet.
    pub(crate) fleet: Option<i64>,
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// The device's own number of `data::generation`.
    of_device: i64,
    /// The numbers of those fleets that have one.
    of_fleets: HashMap<i64, i64>,
    /// Its fleet, and the fleets of its supervisor and its operating system.
    pub(crate) apps: BTreeMap<AppRole, StateApp>,
    /// Variables of services, and settings of the device.
    pub(crate) variables: Assignments,
    pub(crate) labels: Assignments,
    /// Which of the variables are secret.
    secrets: Vec<SecretVariable>,
}

/// Values by name, for each place where they are set: the level, and the service or image there. Settings concern the
/// whole device and have no service or image.
pub(crate) type Assignments = BTreeMap<(Level, Option<i64>), BTreeMap<String, String>>;

/// Whether a state is for the devices that should run it, or for people, who may not see secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretValues {
    Shown,
    Hidden,
}

/// The replacement for a secret.
const MASK: &str = "(secret)";

/// The place of a secret variable's value.
#[derive(Debug)]
struct SecretVariable {
    id: i64,
    place: (Level, Option<i64>),
    name: String,
}

/// The role of an app for a device. If two are the same app, the later role takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub(crate) enum AppRole {
    Supervisor,
    System,
    Fleet,
}

/// The place where a variable is set; later ones take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub(crate) enum Level {
    /// On `release_image`.
    Image,
    /// On `application`.
    Fleet,
    /// On `service`.
    Service,
    /// On the device.
    Device,
    /// On a `service` on the device.
    DeviceService,
}

/// The kind of a row in the result.
#[derive(Debug, Clone, Copy, VariantArray)]
enum RowKind {
    Target,
    App,
    Release,
    Image,
    Variable,
    Label,
    DeviceGeneration,
    FleetGeneration,
}

/// Returns the variant for the number in this column: the statement counts variants from 1.
fn numbered<T: VariantArray + Copy>(row: &Row, column: usize) -> Result<T, DataError> {
    let number = row.id(column)?;
    let at = usize::try_from(number)
        .ok()
        .and_then(|it| it.checked_sub(1));
    let one = at.and_then(|at| T::VARIANTS.get(at)).copied();
    one.ok_or_else(|| DataError::Schema(format!("a row of a state has the number {number}")))
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
    /// JSON, not validated.
    pub(crate) composition: String,
    /// The part signed by its owner, which only devices interpret.
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
        match self.place {
            (Level::Fleet, None) => "application_config_variable",
            (_, None) => "device_config_variable",
            (Level::Image, Some(_)) => "image_environment_variable",
            (Level::Fleet, Some(_)) => "application_environment_variable",
            (Level::Service, Some(_)) => "service_environment_variable",
            (Level::Device, Some(_)) => "device_environment_variable",
            (Level::DeviceService, Some(_)) => "device_service_environment_variable",
        }
    }
}

impl Rows {
    /// Reads the rows of one of these statements; none if there is no such device or fleet.
    ///
    /// # Errors
    /// If the database fails, or a secret that has to be shown cannot be read: without it, the device would start its
    /// services without it.
    pub(crate) async fn read(
        cloud: &Cloud,
        statement: &Sql,
        secret_values: SecretValues,
    ) -> Result<Option<Rows>, DataError> {
        let mut rows = Rows::default();
        let mut has_target = false;
        for row in cloud.database.rows(statement).await? {
            let kind = numbered(&row, 0)?;
            has_target |= matches!(kind, RowKind::Target);
            rows.take(kind, &row)?;
        }
        match secret_values {
            SecretValues::Shown => rows.open_secrets(&cloud.environment.keyring)?,
            SecretValues::Hidden => rows.hide_secrets(),
        }
        Ok(has_target.then_some(rows))
    }

    /// Whether any of it is only for devices.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    fn open_secrets(&mut self, keyring: &Keyring) -> Result<(), UnreadableSecret> {
        let secrets = std::mem::take(&mut self.secrets);
        for secret in &secrets {
            let place = SecretLocation::from_row(secret.table(), "value", secret.id);
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
        let SecretVariable { place, name, .. } = variable;
        self.variables.get_mut(place)?.get_mut(name)
    }

    /// Adds one row of the result, in any order.
    fn take(&mut self, kind: RowKind, row: &Row) -> Result<(), DataError> {
        let number = |at| row.number(at).map(Option::unwrap_or_default);
        match kind {
            RowKind::Target => {
                self.device = row.number(1)?;
                self.actor = row.number(2)?;
                self.fleet = row.number(3)?;
                self.uuid = row.some_text(5)?;
                self.name = row.some_text(6)?;
            }
            RowKind::App => {
                let app = self.app(row)?;
                app.id = number(2)?;
                app.is_host = number(3)? == 1;
                app.uuid = row.some_text(5)?;
                app.name = row.some_text(6)?;
                app.class = row.some_text(7)?;
            }
            RowKind::Release => {
                self.app(row)?.release = Some(StateRelease {
                    id: number(2)?,
                    commit: row.some_text(5)?,
                    composition: row.some_text(6)?,
                    signed_statement: row.text(7)?,
                });
            }
            RowKind::Image => {
                let image = StateImage {
                    release_image: number(2)?,
                    id: number(3)?,
                    service: number(4)?,
                    location: row.some_text(6)?,
                    hash: row.text(7)?,
                    contract: row.text(8)?,
                };
                let images = &mut self.app(row)?.images;
                let service = row.some_text(5)?;
                // Two images of one service in a release are a mistake; the later one is used, so that the choice is
                // always the same.
                match images.get(&service) {
                    Some(other) if other.id > image.id => {}
                    _ => {
                        images.insert(service, image);
                    }
                }
            }
            RowKind::Variable => {
                let place = (numbered(row, 1)?, row.number(2)?);
                let name = row.some_text(5)?;
                if let Some(id) = row.number(3)? {
                    let name = name.clone();
                    self.secrets.push(SecretVariable { id, place, name });
                }
                let values = self.variables.entry(place).or_default();
                values.insert(name, row.some_text(6)?);
            }
            RowKind::Label => {
                let place = (numbered(row, 1)?, row.number(2)?);
                let values = self.labels.entry(place).or_default();
                values.insert(row.some_text(5)?, row.some_text(6)?);
            }
            RowKind::DeviceGeneration => self.of_device = number(1)?,
            RowKind::FleetGeneration => {
                self.of_fleets.insert(number(2)?, number(1)?);
            }
        }
        Ok(())
    }

    /// Returns one number for all inputs (`data::generation`).
    pub(crate) fn fingerprint(&self) -> i64 {
        let of_fleet = |app: &StateApp| self.of_fleets.get(&app.id).copied().unwrap_or_default();
        let of_fleets = self.apps.values().map(|app| (app.id, of_fleet(app)));
        fingerprint(self.of_device, &of_fleets.collect())
    }

    /// Returns the app that a row belongs to.
    fn app(&mut self, row: &Row) -> Result<&mut StateApp, DataError> {
        let role = numbered(row, 1)?;
        Ok(self.apps.entry(role).or_default())
    }
}
