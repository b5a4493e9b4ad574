//! A stand-in for the operating system that only logs what it would do.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::{
    Action, HostOs, MethodCall, MethodError, OsError, UnitName, UnitState, bus_values, host_name,
};

/// Changes nothing on the machine that it runs on: it logs and remembers each action, and writes host names to
/// `etc/hostname` below the host root. Units have the state in which they were last started or stopped; others are not
/// found.
pub struct Rehearsal {
    host_root: PathBuf,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    actions: VecDeque<Action>,
    units: BTreeMap<UnitName, UnitState>,
    /// The answers of methods, by service, path, interface and member.
    methods: BTreeMap<[String; 4], Result<String, MethodError>>,
}

/// How many actions, and how many units, are remembered.
const REMEMBERED: usize = 256;

impl Rehearsal {
    /// Starts with no units and no actions. `host_root` is the folder whose `etc/hostname` is written.
    #[must_use]
    pub fn new(host_root: impl Into<PathBuf>) -> Self {
        Rehearsal {
            host_root: host_root.into(),
            memory: Mutex::default(),
        }
    }

    /// Returns the newest actions, oldest first.
    #[must_use]
    pub fn actions(&self) -> Vec<Action> {
        self.memory.lock().actions.iter().cloned().collect()
    }

    /// Puts a unit into this state.
    pub fn set_unit(&self, unit: UnitName, state: UnitState) {
        self.memory.lock().set(unit, state);
    }

    /// Makes a method of a service answer with these values, a JSON array; other methods do not exist.
    pub fn set_method(
        &self,
        service: &str,
        path: &str,
        interface: &str,
        member: &str,
        answer: impl Into<String>,
    ) {
        let method = [service, path, interface, member].map(str::to_owned);
        self.answer_method(method, Ok(answer.into()));
    }

    /// Like [`Self::set_method`], for a method that may answer with an error. The method is the service, the path, the
    /// interface and the member.
    pub fn answer_method(&self, method: [String; 4], answer: Result<String, MethodError>) {
        self.memory.lock().methods.insert(method, answer);
    }

    fn write_host_name(&self, name: &str) -> Result<(), OsError> {
        host_name::check(name)?;
        let folder = self.host_root.join("etc");
        let path = folder.join("hostname");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, format!("{name}\n")))
            .map_err(|source| OsError::Write { path, source })
    }

    fn remember(&self, action: Action) {
        tracing::info!("rehearsal: {}", action.as_words());
        let mut memory = self.memory.lock();
        match &action {
            Action::Start(unit) | Action::Restart(unit) => {
                memory.set(unit.clone(), UnitState::new("loaded", "active", "running"));
            }
            Action::Stop(unit) => {
                memory.set(unit.clone(), UnitState::new("loaded", "inactive", "dead"));
            }
            _ => {}
        }
        if memory.actions.len() == REMEMBERED {
            memory.actions.pop_front();
        }
        memory.actions.push_back(action);
    }
}

impl Memory {
    fn set(&mut self, unit: UnitName, state: UnitState) {
        if self.units.len() < REMEMBERED || self.units.contains_key(&unit) {
            self.units.insert(unit, state);
        }
    }
}

impl Action {
    fn as_words(&self) -> String {
        match self {
            Action::Reboot => "would reboot".into(),
            Action::PowerOff => "would power off".into(),
            Action::Start(unit) => format!("would start `{unit}`"),
            Action::Stop(unit) => format!("would stop `{unit}`"),
            Action::Restart(unit) => format!("would restart `{unit}`"),
            Action::SetHostName(name) => format!("would rename the host to `{name}`"),
        }
    }
}

impl HostOs for Rehearsal {
    fn describe(&self) -> String {
        "only logged (`rehearse`)".into()
    }

    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), OsError>> {
        let named = match &action {
            Action::SetHostName(name) => self.write_host_name(name),
            _ => Ok(()),
        };
        async {
            named?;
            self.remember(action);
            Ok(())
        }
        .boxed()
    }

    fn unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<UnitState, OsError>> {
        let state = self.memory.lock().units.get(unit).cloned();
        let state = state.unwrap_or_else(UnitState::not_found);
        async { Ok(state) }.boxed()
    }

    fn call_method<'a>(
        &'a self,
        call: &'a MethodCall,
    ) -> BoxFuture<'a, Result<String, MethodError>> {
        let arguments = bus_values::arguments(&call.signature, &call.arguments);
        let key = [&call.service, &call.path, &call.interface, &call.member].map(String::clone);
        let answer = self.memory.lock().methods.get(&key).cloned();
        async move {
            arguments.map_err(MethodError::Invalid)?;
            answer.unwrap_or_else(|| {
                Err(MethodError::Refused {
                    name: "org.freedesktop.DBus.Error.ServiceUnknown".to_owned(),
                    message: format!(
                        "host actions are only rehearsed here, so `{}` is not called, and `{}.{}` at `{}` has no prepared \
                         answer: try the plugin with `supervisor-plugin`, and write its answer as [[dbus]] in device.toml",
                        call.service, call.interface, call.member, call.path
                    ),
                })
            })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn actions_are_remembered_and_units_are_as_they_were_left() {
        let root = tempfile::tempdir().unwrap();
        let os = Rehearsal::new(root.path());
        let unit: UnitName = "openvpn.service".parse().unwrap();
        assert_eq!(os.unit(&unit).await.unwrap(), UnitState::not_found());
        os.act(Action::Restart(unit.clone())).await.unwrap();
        assert_eq!(os.unit(&unit).await.unwrap().active_state, "active");
        os.act(Action::Stop(unit.clone())).await.unwrap();
        assert_eq!(os.unit(&unit).await.unwrap().active_state, "inactive");
        os.act(Action::Start(unit.clone())).await.unwrap();
        os.act(Action::Reboot).await.unwrap();
        os.act(Action::PowerOff).await.unwrap();
        assert_eq!(
            os.actions(),
            [
                Action::Restart(unit.clone()),
                Action::Stop(unit.clone()),
                Action::Start(unit),
                Action::Reboot,
                Action::PowerOff,
            ]
        );
    }

    #[tokio::test]
    async fn a_host_name_is_written_below_the_host_root_and_a_bad_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let os = Rehearsal::new(root.path());
        os.act(Action::SetHostName("gate-1".into())).await.unwrap();
        os.act(Action::SetHostName("gate 2".into()))
            .await
            .unwrap_err();
        let written = fs::read_to_string(root.path().join("etc/hostname")).unwrap();
        assert_eq!(written, "gate-1\n");
        assert_eq!(os.actions(), [Action::SetHostName("gate-1".into())]);
    }

    #[tokio::test]
    async fn a_method_without_an_answer_says_that_nothing_is_called_and_where_answers_are_written()
    {
        let os = Rehearsal::new("/nowhere");
        os.set_method("org.acme.Meter", "/meter", "org.acme.Meter", "Read", "[]");
        let call = |member: &str| MethodCall {
            service: "org.acme.Meter".to_owned(),
            path: "/meter".to_owned(),
            interface: "org.acme.Meter".to_owned(),
            member: member.to_owned(),
            signature: String::new(),
            arguments: "[]".to_owned(),
            longest_answer: 1024,
        };
        assert_eq!(os.call_method(&call("Read")).await, Ok("[]".to_owned()));
        let busy = MethodError::Refused {
            name: "org.acme.Error.Busy".to_owned(),
            message: "it measures".to_owned(),
        };
        let method = ["org.acme.Meter", "/meter", "org.acme.Meter", "Calibrate"];
        os.answer_method(method.map(str::to_owned), Err(busy.clone()));
        assert_eq!(os.call_method(&call("Calibrate")).await, Err(busy));
        let Err(MethodError::Refused { name, message }) = os.call_method(&call("Reset")).await
        else {
            panic!("it has no answer");
        };
        assert_eq!(name, "org.freedesktop.DBus.Error.ServiceUnknown");
        for part in [
            "only rehearsed",
            "`org.acme.Meter.Reset` at `/meter`",
            "[[dbus]]",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    #[tokio::test]
    async fn old_actions_are_forgotten() {
        let os = Rehearsal::new("/nowhere");
        for _ in 0..REMEMBERED {
            os.act(Action::Reboot).await.unwrap();
        }
        os.act(Action::PowerOff).await.unwrap();
        assert_eq!(os.actions().len(), REMEMBERED);
        assert_eq!(os.actions().last(), Some(&Action::PowerOff));
    }
}
