use plugin_manifest::Manifest;
use plugin_test_host::protocol::{
    ApiRequest, ApiSend, CloudQueue, CloudRecords, DbusCall, DbusMethodCall, GpioRead, GpioWrite,
    HttpRequest, HttpSend, Identify, LedOpen, ProxyAnswer, ProxyCall, ProxyError, ProxyRequest,
    ProxyState, StoreGet, UnitsRestart, UnitsState,
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
    let file = "[http]\n\"GET https://api.acme.example/now\" = { unreachable = \"it is down\" }\n";
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
