//! What plugins on the device of a device file are answered where that differs from a device with a policy: other
//! plugins' actions have the answers of the file, and a refusal says what the author can write into the file. The effects
//! of the calls are recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::ready;
use plugin_test_host::protocol::text::one_line;
use plugin_test_host::protocol::{
    ActionsCall, ApiError, CapabilityAnswer as Answer, CapabilityCall as Call, CloudRefusal,
    DbusError, DbusRefusal, GpioError, HttpError, I2cError, I2cReadByte, I2cReadWord, I2cWriteByte,
    I2cWriteRead, I2cWriteWord, InstanceId, LedError, LogEntry, OwnActionError, SerialError,
    UnitError,
};
use plugin_test_host::{AnswerChange, CallFilter};

use super::actions::OtherPlugins;
use super::effects::Effects;
use super::hints::Hints;
use super::identify::IdentifyProvider;
use super::proxy_redirector::RedirectorProvider;

/// The name of the error of a method that the device file does not have.
const NO_METHOD: &str = "org.freedesktop.DBus.Error.ServiceUnknown";
/// The most bytes of a name from a plugin that a remedy repeats.
const SHOWN_NAME: usize = 256;

/// Matches an answer: the text of each of these refusals is replaced by the remedy, and the other arms follow.
macro_rules! replace_refusal {
    ($answer:ident, $remedy:ident, [$($call:ident($error:ident::$refusal:ident)),* $(,)?], { $($arms:tt)* }) => {
        match $answer {
            $(Answer::$call(Err($error::$refusal(_))) => {
                Answer::$call(Err($error::$refusal($remedy)))
            })*
            $($arms)*
        }
    };
}

/// What decides what a plugin may use on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantSource {
    /// The device file: the plugin may use all of it.
    DeviceFile,
    /// A policy that the author has named.
    Policy,
}

/// What the calls of a plugin leave behind, for tests and for the author.
#[derive(Clone)]
pub(crate) struct CallRecords {
    /// The other plugins of the device, with the calls of them.
    pub(crate) other_plugins: Arc<OtherPlugins>,
    pub(crate) effects: Arc<Effects>,
    pub(crate) hints: Arc<Hints>,
}

/// Answers the calls of plugins on a device.
pub(crate) struct DeviceAnswers {
    pub(super) records: CallRecords,
    /// What identifies the device; `None` if the plugin itself does.
    pub(super) identify: Option<IdentifyProvider>,
    /// What configures the device's proxy; `None` if the plugin itself does.
    pub(super) redirector: Option<RedirectorProvider>,
    /// What a refusal says; without it, what a device says whose owner has written a policy.
    pub(super) remedies: Option<Arc<Remedies>>,
}

/// What the author can write into the device file.
pub(crate) struct Remedies {
    /// The device file, for people.
    pub(super) file: String,
    /// The kinds of records of the device's cloud, if it has one.
    pub(super) records: Option<BTreeSet<String>>,
    /// The methods on the system bus that the file has: service, path, interface and member.
    pub(super) methods: BTreeSet<[String; 4]>,
    /// The requests to other hosts that the file has: method and address.
    pub(super) requests: BTreeSet<String>,
    pub(super) hints: Arc<Hints>,
}

impl CallFilter for DeviceAnswers {
    fn change(&self, instance: InstanceId, call: &Call) -> Option<AnswerChange> {
        let change = match call {
            Call::ActionsCall(request) => Some(self.answer_of_action(request.clone())),
            Call::Identify(_) => self.identify.as_ref().map(IdentifyProvider::answer),
            Call::ProxyRequest(request) => {
                let redirector = self.redirector.as_ref();
                redirector.map(|provider| provider.answer(&request.call))
            }
            call => self.remedy(call),
        };
        if !Effects::may_follow(call) {
            return change;
        }
        let effects = Arc::clone(&self.records.effects);
        let call = call.clone();
        Some(Box::new(move |answer| {
            async move {
                let answer = match change {
                    Some(change) => change(answer).await,
                    None => answer,
                };
                effects.record(instance, &call, &answer);
                answer
            }
            .boxed()
        }))
    }

    fn log(&self, entry: &LogEntry) {
        self.records.effects.record_log(entry);
    }

    fn end(&self, instance: InstanceId) {
        self.records.effects.forget(instance);
    }
}

impl DeviceAnswers {
    /// Answers an action that no plugin of the device provides.
    fn answer_of_action(&self, request: ActionsCall) -> AnswerChange {
        let other_plugins = Arc::clone(&self.records.other_plugins);
        let grants_all = self.remedies.is_some();
        Box::new(move |answer| {
            let answer = match answer {
                Answer::ActionsCall(Err(error)) if has_no_provider(&error, grants_all) => {
                    Answer::ActionsCall(other_plugins.answer(&request.action, request.input))
                }
                answer => answer,
            };
            ready(answer).boxed()
        })
    }

    /// Puts what the author can write into the device file in the place of a refusal.
    fn remedy(&self, call: &Call) -> Option<AnswerChange> {
        let remedies = Arc::clone(self.remedies.as_ref()?);
        let remedy = remedies.remedy(call)?;
        Some(Box::new(move |answer| {
            ready(remedies.change(answer, remedy)).boxed()
        }))
    }
}

/// Returns whether no plugin of the device has performed an action: there is none, or the policy, which cannot name
/// actions that are not known before they are called, does not name it.
fn has_no_provider(error: &OwnActionError, grants_all: bool) -> bool {
    match error {
        OwnActionError::Unavailable(_) => true,
        OwnActionError::NotGranted(_) => grants_all,
        _ => false,
    }
}

impl Remedies {
    /// Returns what to write so that the device has what the call requests; `None` for calls that need nothing of the
    /// file.
    fn remedy(&self, call: &Call) -> Option<String> {
        let file = &self.file;
        let short = |name: &str| one_line(name, SHOWN_NAME);
        Some(match call {
            Call::ApiSend(call) => {
                let path = call.request.path.split(['?', '#']).next();
                let request = format!("{} {}", call.request.method, path.unwrap_or_default());
                let request = short(&request);
                format!(
                    "`{file}` has no answer to `{request}`: add `\"{request}\" = {{ body = '{{}}' }}` to its table [api]"
                )
            }
            Call::HttpSend(call) => {
                // The address is completed as it is for the comparison with the file.
                let url = call.request.url.parse::<http::Uri>();
                let url = url.map_or_else(|_| call.request.url.clone(), |url| url.to_string());
                let request = format!("{} {url}", call.request.method);
                // Its error is the author's own words.
                if self.requests.contains(&request) {
                    return None;
                }
                let request = short(&request);
                format!(
                    "`{file}` has no answer to `{request}`: add `\"{request}\" = {{ status = 200, body = \"\" }}` to its table \
                     [http]"
                )
            }
            Call::DbusCall(call) => {
                let call = &call.call;
                let method = [&call.service, &call.path, &call.interface, &call.member];
                // Whatever it answers is the author's own words.
                if self.methods.contains(&method.map(String::clone)) {
                    return None;
                }
                let member = short(&format!("{}.{}", call.interface, call.member));
                format!(
                    "`{file}` has no answer of `{member}`: add a table [[dbus]] with `service = \"{}\"`, `path = \"{}\"`, \
                     `member = \"{member}\"` and `values = []`",
                    short(&call.service),
                    short(&call.path)
                )
            }
            Call::LedOpen(call) => {
                let name = short(&call.name);
                format!("`{file}` has no LED `{name}`: add `[leds.{name:?}]`")
            }
            Call::UnitsState(call) => self.no_unit(&short(&call.unit)),
            Call::UnitsRestart(call) => self.no_unit(&short(&call.unit)),
            Call::SerialOpen(call) => format!(
                "`{file}` has no serial port `{0}`: add `{0:?}` to its list `serial`",
                short(&call.name)
            ),
            Call::GpioRead(call) => self.no_line(&short(&call.name), "out"),
            Call::GpioWaitEdge(call) => self.no_line(&short(&call.name), "in"),
            Call::GpioWrite(call) => self.no_line(&short(&call.name), "out"),
            Call::I2cWriteRead(I2cWriteRead { name, .. })
            | Call::I2cReadByte(I2cReadByte { name, .. })
            | Call::I2cReadWord(I2cReadWord { name, .. })
            | Call::I2cWriteByte(I2cWriteByte { name, .. })
            | Call::I2cWriteWord(I2cWriteWord { name, .. }) => format!(
                "`{file}` has no chip `{0}`: add `{0:?} = {{ registers = [0x00] }}` to its table [i2c]",
                short(name)
            ),
            Call::CloudRecords(call) => self.no_records(&call.kind)?,
            Call::CloudQueue(call) => self.no_records(&call.kind)?,
            _ => return None,
        })
    }

    fn no_unit(&self, unit: &str) -> String {
        format!(
            "`{}` has no unit `{unit}`: add `[units.{unit:?}]`",
            self.file
        )
    }

    fn no_line(&self, line: &str, direction: &str) -> String {
        format!(
            "`{}` has no line `{line}`: add `{line:?} = {{ direction = \"{direction}\" }}` to its table [gpio]",
            self.file
        )
    }

    /// Returns `None` for a kind of records that the cloud has.
    fn no_records(&self, kind: &str) -> Option<String> {
        let file = &self.file;
        match &self.records {
            None => Some(format!(
                "the device has no cloud, because `{file}` has no table [cloud]"
            )),
            Some(kinds) if kinds.contains(kind) => None,
            Some(_) => Some(format!(
                "`{file}` has no records `{0}`: add `{0:?} = []` to its table [cloud]",
                one_line(kind, SHOWN_NAME)
            )),
        }
    }

    /// Replaces what a device says about its policy by the remedy.
    fn change(&self, answer: Answer, remedy: String) -> Answer {
        let shown = remedy.clone();
        let changed = replace_refusal!(
            answer,
            remedy,
            [
                ApiSend(ApiError::NotGranted),
                HttpSend(HttpError::NotGranted),
                HttpSend(HttpError::Unreachable),
                DbusCall(DbusError::NotGranted),
                LedOpen(LedError::NotFound),
                UnitsState(UnitError::NotGranted),
                UnitsRestart(UnitError::NotGranted),
                SerialOpen(SerialError::NotGranted),
                GpioRead(GpioError::NotGranted),
                GpioWaitEdge(GpioError::NotGranted),
                GpioWrite(GpioError::NotGranted),
                I2cWriteRead(I2cError::NotGranted),
                I2cReadByte(I2cError::NotGranted),
                I2cReadWord(I2cError::NotGranted),
                I2cWriteByte(I2cError::NotGranted),
                I2cWriteWord(I2cError::NotGranted),
            ],
            {
                Answer::DbusCall(Err(DbusError::Refused(refusal))) if refusal.name == NO_METHOD => {
                    let name = refusal.name;
                    let message = remedy;
                    Answer::DbusCall(Err(DbusError::Refused(DbusRefusal { name, message })))
                }
                Answer::CloudRecords(Err(CloudRefusal::Refused(_))) => {
                    Answer::CloudRecords(Err(self.cloud_refusal(remedy)))
                }
                Answer::CloudQueue(Err(CloudRefusal::Refused(_))) => {
                    Answer::CloudQueue(Err(self.cloud_refusal(remedy)))
                }
                answer => return answer,
            }
        );
        self.hints.show(&shown);
        changed
    }

    /// Returns the refusal of a cloud that does not have these records, or of a device without a cloud.
    fn cloud_refusal(&self, remedy: String) -> CloudRefusal {
        match self.records {
            Some(_) => CloudRefusal::Refused(remedy),
            None => CloudRefusal::Unmanaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Manifest;
    use plugin_test_host::protocol::{
        ApiRequest, ApiSend, CloudQueue, CloudRecords, DbusCall, DbusMethodCall, GpioRead,
        GpioWrite, HttpRequest, HttpSend, Identify, LedOpen, ProxyAnswer, ProxyCall, ProxyError,
        ProxyRequest, ProxyState, StoreGet, UnitsRestart, UnitsState,
    };

    use super::*;
    use crate::device_file::DeviceFile;

    fn filter(file: &str, source: GrantSource) -> Arc<dyn CallFilter> {
        let device: DeviceFile = toml::from_str(file).unwrap();
        let records = device.call_records("device.toml");
        device.answers("device.toml", records, &manifest(""), source)
    }

    fn manifest(more: &str) -> Manifest {
        let routes = "routes = [{ method = \"GET\", path = \"/v3/a\" }]";
        let text =
            format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{routes}\n{more}");
        Manifest::parse(&text).unwrap()
    }

    /// Returns what a plugin is answered in place of this answer to its call.
    fn answer_to(filter: &dyn CallFilter, call: &Call, answer: &Answer) -> Answer {
        match filter.change(InstanceId(1), call) {
            Some(change) => change(answer.clone()).now_or_never().unwrap(),
            None => answer.clone(),
        }
    }

    fn policy() -> String {
        "the policy does not name it".to_owned()
    }

    fn method(member: &str) -> Call {
        let call = DbusMethodCall {
            service: "org.acme.Meter".to_owned(),
            path: "/org/acme/Meter".to_owned(),
            interface: "org.acme.Meter".to_owned(),
            member: member.to_owned(),
            signature: String::new(),
            arguments: "[]".to_owned(),
        };
        DbusCall { call }.into()
    }

    fn request(url: &str) -> Call {
        let request = HttpRequest {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        HttpSend { request }.into()
    }

    /// Returns a refusal of each kind of call, and what the author must write into the device file.
    fn refusals() -> Vec<(Call, Answer, &'static str)> {
        let name = || "door".to_owned();
        let api = ApiRequest {
            method: "GET".to_owned(),
            path: "/v2/state/status?all".to_owned(),
            content_type: None,
            body: Vec::new(),
        };
        let no_method = DbusRefusal {
            name: NO_METHOD.to_owned(),
            message: policy(),
        };
        vec![
            (
                ApiSend { request: api }.into(),
                Answer::ApiSend(Err(ApiError::NotGranted(policy()))),
                "add `\"GET /v2/state/status\" = { body = '{}' }` to its table [api]",
            ),
            (
                request("https://api.acme.example"),
                Answer::HttpSend(Err(HttpError::NotGranted(policy()))),
                "add `\"GET https://api.acme.example/\" = { status = 200, body = \"\" }` to its table [http]",
            ),
            (
                request("https://api.acme.example/now"),
                Answer::HttpSend(Err(HttpError::Unreachable("no answer".to_owned()))),
                "add `\"GET https://api.acme.example/now\" = ",
            ),
            (
                method("Read"),
                Answer::DbusCall(Err(DbusError::NotGranted(policy()))),
                "add a table [[dbus]] with `service = \"org.acme.Meter\"`, `path = \"/org/acme/Meter\"`, \
                 `member = \"org.acme.Meter.Read\"` and `values = []`",
            ),
            (
                method("Read"),
                Answer::DbusCall(Err(DbusError::Refused(no_method))),
                "add a table [[dbus]]",
            ),
            (
                LedOpen { name: name() }.into(),
                Answer::LedOpen(Err(LedError::NotFound(policy()))),
                "`device.toml` has no LED `door`: add `[leds.\"door\"]`",
            ),
            (
                UnitsState { unit: name() }.into(),
                Answer::UnitsState(Err(UnitError::NotGranted(policy()))),
                "add `[units.\"door\"]`",
            ),
            (
                UnitsRestart { unit: name() }.into(),
                Answer::UnitsRestart(Err(UnitError::NotGranted(policy()))),
                "add `[units.\"door\"]`",
            ),
            (
                GpioRead { name: name() }.into(),
                Answer::GpioRead(Err(GpioError::NotGranted(policy()))),
                "has no line `door`: add `\"door\" = { direction = ",
            ),
            (
                GpioWrite {
                    name: name(),
                    on: true,
                }
                .into(),
                Answer::GpioWrite(Err(GpioError::NotGranted(policy()))),
                "add `\"door\" = { direction = \"out\" }` to its table [gpio]",
            ),
            (
                I2cReadByte {
                    name: name(),
                    register: 0,
                }
                .into(),
                Answer::I2cReadByte(Err(I2cError::NotGranted(policy()))),
                "add `\"door\" = { registers = [0x00] }` to its table [i2c]",
            ),
            (
                CloudRecords {
                    kind: name(),
                    fields: Vec::new(),
                }
                .into(),
                Answer::CloudRecords(Err(CloudRefusal::Refused(policy()))),
                "add `\"door\" = []` to its table [cloud]",
            ),
            (
                CloudQueue {
                    kind: name(),
                    values: Vec::new(),
                }
                .into(),
                Answer::CloudQueue(Err(CloudRefusal::Refused(policy()))),
                "add `\"door\" = []` to its table [cloud]",
            ),
        ]
    }

    #[test]
    fn a_refusal_says_what_to_write_into_the_device_file() {
        let filter_of_file = filter("[cloud]\nother = []", GrantSource::DeviceFile);
        let filter_of_policy = filter("[cloud]\nother = []", GrantSource::Policy);
        for (call, refusal, expected) in refusals() {
            let answer = answer_to(&*filter_of_file, &call, &refusal);
            let text = format!("{answer:?}").replace("\\\"", "\"");
            assert!(text.contains(expected), "{expected} in {text}");
            assert!(!text.contains("policy"), "{text}");
            // The owner of a policy reads what a device says.
            assert_eq!(answer_to(&*filter_of_policy, &call, &refusal), refusal);
        }
    }

    #[test]
    fn other_answers_and_errors_stay_as_they_are() {
        let filter = filter("[cloud]\ndoor = []", GrantSource::DeviceFile);
        let kind = "door".to_owned();
        let fields = Vec::new();
        for (call, answer) in [
            (
                StoreGet {
                    key: "a".to_owned(),
                }
                .into(),
                Answer::StoreGet(Ok(None)),
            ),
            (method("Read"), Answer::DbusCall(Ok("[]".to_owned()))),
            (
                method("Read"),
                Answer::DbusCall(Err(DbusError::Invalid("it is too long".to_owned()))),
            ),
            (
                CloudRecords { kind, fields }.into(),
                Answer::CloudRecords(Err(CloudRefusal::Refused("too many fields".to_owned()))),
            ),
        ] {
            assert_eq!(answer_to(&*filter, &call, &answer), answer);
        }
    }

    #[test]
    fn an_error_of_a_method_in_the_file_is_the_authors_own_whatever_its_name() {
        let file = "[[dbus]]\nservice = \"org.acme.Meter\"\npath = \"/org/acme/Meter\"\nmember = \"org.acme.Meter.Read\"\n\
                    error = \"org.freedesktop.DBus.Error.ServiceUnknown\"\nmessage = \"it is off\"\n";
        let filter = filter(file, GrantSource::DeviceFile);
        let refusal = DbusRefusal {
            name: NO_METHOD.to_owned(),
            message: "it is off".to_owned(),
        };
        let answer = Answer::DbusCall(Err(DbusError::Refused(refusal)));
        assert_eq!(answer_to(&*filter, &method("Read"), &answer), answer);
        let other = answer_to(&*filter, &method("Reset"), &answer);
        assert_ne!(other, answer, "it is not in the file");
    }

    #[test]
    fn a_device_without_a_table_of_records_has_no_cloud() {
        let call = CloudQueue {
            kind: "door".to_owned(),
            values: Vec::new(),
        };
        let refusal = Answer::CloudQueue(Err(CloudRefusal::Refused(policy())));
        let answer = answer_to(
            &*filter("", GrantSource::DeviceFile),
            &call.into(),
            &refusal,
        );
        assert_eq!(answer, Answer::CloudQueue(Err(CloudRefusal::Unmanaged)));
    }

    #[test]
    fn an_action_is_answered_by_the_file_if_no_plugin_of_the_device_provides_it() {
        let file = "[actions]\n\"acme-rails/set\" = { json = true }";
        let call = |action: &str| {
            let action = action.to_owned();
            let input = b"5v".to_vec();
            Call::from(ActionsCall { action, input })
        };
        let set = call("acme-rails/set");
        let answered = Answer::ActionsCall(Ok(b"true".to_vec()));
        let not_granted = Answer::ActionsCall(Err(OwnActionError::NotGranted(policy())));
        let unavailable = Answer::ActionsCall(Err(OwnActionError::Unavailable(policy())));
        let refused = Answer::ActionsCall(Err(OwnActionError::Refused("no".to_owned())));
        let filter_of_file = filter(file, GrantSource::DeviceFile);
        assert_eq!(answer_to(&*filter_of_file, &set, &not_granted), answered);
        assert_eq!(answer_to(&*filter_of_file, &set, &unavailable), answered);
        // What a plugin of the device answers stays.
        assert_eq!(answer_to(&*filter_of_file, &set, &refused), refused);
        let none = answer_to(&*filter_of_file, &call("gone/set"), &not_granted);
        let expected = "no plugin of this device provides `gone/set`".to_owned();
        let expected = Answer::ActionsCall(Err(OwnActionError::Unavailable(expected)));
        assert_eq!(none, expected);
        // A policy of the author's own must name the action, as on a device.
        let filter_of_policy = filter(file, GrantSource::Policy);
        assert_eq!(
            answer_to(&*filter_of_policy, &set, &not_granted),
            not_granted
        );
        assert_eq!(answer_to(&*filter_of_policy, &set, &unavailable), answered);
    }

    #[test]
    fn remedies_for_names_of_any_number_and_length_stay_within_bounds() {
        let hints = Arc::<Hints>::default();
        let remedies = Remedies {
            file: "device.toml".to_owned(),
            records: None,
            methods: BTreeSet::new(),
            requests: BTreeSet::new(),
            hints: Arc::clone(&hints),
        };
        for number in 0..100 {
            let unit = format!("{number}\n{}", "x".repeat(1 << 16));
            let call = UnitsState { unit }.into();
            let remedy = remedies.remedy(&call).unwrap();
            assert!(remedy.len() < 1024 && !remedy.contains('\n'), "{remedy}");
            let refusal = Answer::UnitsState(Err(UnitError::NotGranted(policy())));
            remedies.change(refusal, remedy);
        }
        assert!(hints.take().len() < 100);
    }

    #[test]
    fn a_host_that_the_file_makes_unreachable_has_the_authors_own_words() {
        let file =
            "[http]\n\"GET https://api.acme.example/now\" = { unreachable = \"it is down\" }\n";
        let filter = filter(file, GrantSource::DeviceFile);
        let answer = Answer::HttpSend(Err(HttpError::Unreachable("it is down".to_owned())));
        let now = request("https://api.acme.example/now");
        assert_eq!(answer_to(&*filter, &now, &answer), answer);
        let other = request("https://api.acme.example/then");
        assert_ne!(answer_to(&*filter, &other, &answer), answer);
    }

    #[test]
    fn the_device_is_identified_by_the_file_unless_the_plugin_itself_does_it() {
        let call = Call::from(Identify {});
        let device: DeviceFile = toml::from_str("[identify]\n").unwrap();
        let none = Answer::Identify(Err("it is dark".to_owned()));
        for (more, expected) in [
            ("", Answer::Identify(Ok(()))),
            (
                "boards = [\"acme-1\"]\nprovides = [\"identify\"]\n",
                none.clone(),
            ),
        ] {
            let records = device.call_records("device.toml");
            for source in [GrantSource::DeviceFile, GrantSource::Policy] {
                let manifest = manifest(more);
                let filter = device.answers("device.toml", records.clone(), &manifest, source);
                assert_eq!(answer_to(&*filter, &call, &none), expected, "{more}");
            }
        }
    }

    #[test]
    fn the_proxy_is_configured_by_the_file_unless_the_plugin_itself_does_it() {
        let call = Call::from(ProxyRequest {
            call: ProxyCall::Get,
        });
        let device: DeviceFile = toml::from_str("[proxy_redirector]\n").unwrap();
        let unavailable = ProxyError::Unavailable("there is none".to_owned());
        let none = Answer::ProxyRequest(Err(unavailable));
        let direct = ProxyAnswer::State(ProxyState::Direct);
        for (more, expected) in [
            ("", Answer::ProxyRequest(Ok(direct))),
            (
                "boards = [\"acme-1\"]\nprovides = [\"proxy-redirector\"]\n",
                none.clone(),
            ),
        ] {
            let records = device.call_records("device.toml");
            for source in [GrantSource::DeviceFile, GrantSource::Policy] {
                let manifest = manifest(more);
                let filter = device.answers("device.toml", records.clone(), &manifest, source);
                assert_eq!(answer_to(&*filter, &call, &none), expected, "{more}");
            }
        }
    }

    #[test]
    fn a_refusal_is_a_hint_in_the_failure_of_a_step() {
        let device: DeviceFile = toml::from_str("").unwrap();
        let records = device.call_records("device.toml");
        let source = GrantSource::DeviceFile;
        let filter = device.answers("device.toml", records.clone(), &manifest(""), source);
        let unavailable = OwnActionError::Unavailable("there is none".to_owned());
        let call = ActionsCall {
            action: "acme-rails/set".to_owned(),
            input: Vec::new(),
        };
        for (call, answer, expected) in [
            (
                call.into(),
                Answer::ActionsCall(Err(unavailable)),
                "to its table [actions]",
            ),
            (
                Identify {}.into(),
                Answer::Identify(Err("there is none".to_owned())),
                "add a table [identify] to it",
            ),
            (
                ProxyRequest {
                    call: ProxyCall::Get,
                }
                .into(),
                Answer::ProxyRequest(Err(ProxyError::Unavailable("there is none".to_owned()))),
                "add a table [proxy_redirector] to it",
            ),
        ] {
            answer_to(&*filter, &call, &answer);
            let hints = records.hints.take().join("\n");
            assert!(hints.contains(expected), "{expected} in {hints}");
        }
    }

    #[test]
    fn the_effects_of_calls_are_recorded_as_the_plugin_is_answered() {
        let device: DeviceFile = toml::from_str("[units.\"vpn.service\"]\n").unwrap();
        let records = device.call_records("device.toml");
        let source = GrantSource::DeviceFile;
        let filter = device.answers("device.toml", records.clone(), &manifest(""), source);
        let unit = "vpn.service".to_owned();
        let call = UnitsRestart { unit }.into();
        answer_to(&*filter, &call, &Answer::UnitsRestart(Ok(())));
        let refusal = UnitError::NotGranted(policy());
        answer_to(&*filter, &call, &Answer::UnitsRestart(Err(refusal)));
        assert_eq!(records.effects.take_restarts().entries, ["vpn.service"]);
    }
}
