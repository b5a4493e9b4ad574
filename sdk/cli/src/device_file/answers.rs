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
mod tests;
