use std::collections::BTreeMap;

use minisign::KeyPair;
use model::{Branding, TargetApp, TargetState};
use proptest::prelude::*;
use serde_json::{Value, json};
use signatures::PublicKey;

use crate::{
    AcceptedReleases, Allowances, JudgementContext, Refusal, SignedText, SigningError, Statement,
    TargetPolicy, judge,
};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";
const APP: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";
const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const NOW: u64 = 1_790_000_000_000;

/// Returns the cloud's document, without a signature.
fn document() -> Value {
    let service = json!({
        "id": 31, "image_id": 41, "image": format!("registry/web@{DIGEST}"),
        "environment": { "GREETING": "hello" },
        "labels": { "role": "web" },
        "contract": { "requires": [{ "type": "sw.os" }] },
        "composition": {
            "privileged": false, "command": ["serve", "--all"], "volumes": ["data:/data"],
        },
    });
    let release = json!({
        "id": 21, "services": { "web": service },
        "volumes": { "data": { "driver": "local" } }, "networks": { "inner": { "internal": true } },
    });
    let app = json!({
        "id": 11, "name": "pump", "is_host": false, "class": "fleet", "releases": { "c1": release },
    });
    let config = json!({
        "SUPERVISOR_POLL_INTERVAL": "900000", "HOST_FIREWALL_MODE": "on", "SUPERVISOR_DELTA": "1",
    });
    json!({ DEVICE: { "name": "here", "config": config, "apps": { APP: app } } })
}

fn parse(document: &Value) -> Option<TargetState> {
    let device = DEVICE.parse().unwrap();
    TargetState::from_cloud_json(document, &device, &Branding::default()).ok()
}

fn allowances() -> Allowances {
    Allowances {
        version: 5,
        expires_ms: Some(NOW + 1000),
        variables: [(None, ["GREETING".to_owned()].into())].into(),
        open_settings: ["SUPERVISOR_DELTA".to_owned()].into(),
    }
}

struct Owner {
    pair: KeyPair,
    policy: TargetPolicy,
}

impl Owner {
    fn new() -> Owner {
        let pair = KeyPair::generate_unencrypted_keypair().unwrap();
        let policy = TargetPolicy {
            keys: vec![PublicKey::from_base64(&pair.pk.to_base64()).unwrap()],
            ..TargetPolicy::default()
        };
        Owner { pair, policy }
    }

    fn sign_text(&self, statement: &str) -> String {
        let signature = minisign::sign(None, &self.pair.sk, statement.as_bytes(), None, None);
        let signature = signature.unwrap().into_string();
        let signature = &signature;
        SignedText {
            signature,
            statement,
        }
        .join()
    }

    /// Signs the document's release, and adds the signed text to the document.
    fn sign(&self, document: &mut Value, allowances: &Allowances) {
        let target = parse(document).unwrap();
        let app = target.apps.values().next().unwrap();
        let statement = Statement::from_app(app, &target.config, allowances).unwrap();
        let text = self.sign_text(&statement.to_text().unwrap());
        *signed(document) = text.into();
    }

    fn judge(
        &self,
        document: &Value,
        accepted: &AcceptedReleases,
        ms: u64,
    ) -> Result<AcceptedReleases, Refusal> {
        let target = parse(document).unwrap();
        let is_not_ours = |app: &TargetApp| app.is_host;
        let context = JudgementContext {
            ms,
            accepted,
            is_not_ours: &is_not_ours,
        };
        judge(&target, &self.policy, &context)
    }

    fn refuses(&self, document: &Value, accepted: &AcceptedReleases, ms: u64, why: &str) {
        let refusal = self.judge(document, accepted, ms).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
}

fn release(document: &mut Value) -> &mut Value {
    &mut document[DEVICE]["apps"][APP]["releases"]["c1"]
}

fn signed(document: &mut Value) -> &mut Value {
    &mut release(document)["signed_statement"]
}

fn nothing() -> AcceptedReleases {
    AcceptedReleases::default()
}

#[test]
fn a_signed_target_is_accepted_and_its_version_stored() {
    let owner = Owner::new();
    let mut document = document();
    owner.sign(&mut document, &allowances());
    let accepted = owner.judge(&document, &nothing(), NOW).unwrap();
    assert_eq!(accepted.0[&APP.parse().unwrap()].version, 5);
    // The statement names it as a setting for the cloud.
    document[DEVICE]["name"] = "there".into();
    document[DEVICE]["config"]["SUPERVISOR_DELTA"] = "0".into();
    let services = &mut release(&mut document)["services"];
    services["web"]["environment"]["GREETING"] = "good day".into();
    owner.judge(&document, &accepted, NOW).unwrap();
}

#[test]
fn a_version_goes_up_alone_and_an_accepted_statement_expires_no_more() {
    let owner = Owner::new();
    let with = |version| {
        let mut document = document();
        let allowances = Allowances {
            version,
            ..allowances()
        };
        owner.sign(&mut document, &allowances);
        document
    };
    let five = with(5);
    let accepted = owner.judge(&five, &nothing(), NOW).unwrap();
    owner.refuses(&with(4), &accepted, NOW, "the version 4");
    owner.judge(&with(6), &accepted, NOW).unwrap();
    owner.refuses(&with(6), &accepted, NOW + 1000, "could be accepted until");
    owner.judge(&five, &accepted, NOW + 1000).unwrap();
    // It no longer needs its key either: running apps continue when a key is replaced.
    let other = Owner::new();
    other.judge(&five, &accepted, NOW).unwrap();
    other.refuses(&five, &nothing(), NOW, "that the policy does not name");
    // Two statements with the same version: nobody knows which is meant.
    let mut same = document();
    let allowances = Allowances {
        open_settings: allowances().open_settings,
        variables: [(None, ["GREETING".to_owned(), "MORE".to_owned()].into())].into(),
        ..allowances()
    };
    owner.sign(&mut same, &allowances);
    owner.refuses(&same, &accepted, NOW, "another statement with that version");
}

#[test]
fn without_a_valid_statement_no_target_is_accepted() {
    let (owner, other) = (Owner::new(), Owner::new());
    let mut document = document();
    owner.refuses(&document, &nothing(), NOW, "is not signed");
    other.sign(&mut document, &allowances());
    owner.refuses(&document, &nothing(), NOW, "that the policy does not name");
    for (text, why) in [
        (owner.sign_text("{}"), "cannot be read"),
        ("no signature".to_owned(), "four lines"),
        ("\n\n\n\n{}".to_owned(), "is not a minisign signature"),
    ] {
        *signed(&mut document) = text.into();
        owner.refuses(&document, &nothing(), NOW, why);
    }
    // A condition that this program does not know could be the important one.
    owner.sign(&mut document, &allowances());
    let text = signed(&mut document).as_str().unwrap().to_owned();
    let statement = SignedText::parse(&text).unwrap().statement;
    for (from, to) in [
        ("\"version\"", "\"only_on\": \"mars\", \"version\""),
        ("signed-target/1", "signed-target/2"),
    ] {
        let statement = statement.replacen(from, to, 1);
        *signed(&mut document) = owner.sign_text(&statement).into();
        assert!(owner.judge(&document, &nothing(), NOW).is_err(), "{to}");
    }
    // Exactly the bytes that were signed.
    let changed = text.replacen("\"version\": 5", "\"version\": 6", 1);
    *signed(&mut document) = changed.into();
    owner.refuses(&document, &nothing(), NOW, "does not match the content");
}

#[test]
fn an_app_stays_on_the_device_unless_the_policy_lets_it_go() {
    let mut owner = Owner::new();
    let mut document = document();
    owner.sign(&mut document, &allowances());
    let accepted = owner.judge(&document, &nothing(), NOW).unwrap();
    let mut without_settings = document.clone();
    without_settings[DEVICE]["config"] = json!({});
    let mut gone = without_settings.clone();
    gone[DEVICE]["apps"] = json!({});
    let mut empty = without_settings.clone();
    empty[DEVICE]["apps"][APP]["releases"] = json!({});
    let mut host = document.clone();
    host[DEVICE]["apps"][APP]["is_host"] = true.into();
    owner.refuses(&host, &accepted, NOW, "the host's operating system");
    for document in [&gone, &empty] {
        owner.refuses(document, &accepted, NOW, "removal = true");
    }
    owner.policy.removal = true;
    for without in [&gone, &empty] {
        let left = owner.judge(without, &accepted, NOW).unwrap();
        assert!(!left.0[&APP.parse().unwrap()].is_on_device);
        // Its version is not forgotten when the app is removed.
        let mut older = document.clone();
        let allowances = Allowances {
            version: 4,
            ..allowances()
        };
        owner.sign(&mut older, &allowances);
        owner.refuses(&older, &left, NOW, "the version 4");
        owner.judge(&document, &left, NOW).unwrap();
    }
    // Settings without any statement: only the polling interval.
    owner.refuses(
        &json!({ DEVICE: { "name": "", "config": { "SUPERVISOR_LOCAL_MODE": "1" }, "apps": {} } }),
        &nothing(),
        NOW,
        "the setting `SUPERVISOR_LOCAL_MODE`",
    );
}

#[test]
fn images_without_a_digest_and_variables_without_an_allowance_are_not_signed() {
    let mut document = document();
    let web = &mut release(&mut document)["services"]["web"];
    web["image"] = "registry/web:latest".into();
    web["environment"]["MORE"] = "1".into();
    let target = parse(&document).unwrap();
    let app = target.apps.values().next().unwrap();
    let reasons = Statement::from_app(app, &target.config, &allowances()).unwrap_err();
    assert!(matches!(
        &reasons[..],
        [SigningError::NoDigest { .. }, SigningError::Variable { variable, .. }] if variable == "MORE"
    ));
}

/// The place of a value in a document.
type Place = Vec<String>;

fn places(value: &Value, at: &Place, all: &mut Vec<Place>) {
    all.push(at.clone());
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(n, v)| (n.clone(), v)).collect(),
        Value::Array(items) => (0..).map(|n: usize| n.to_string()).zip(items).collect(),
        _ => Vec::new(),
    };
    for (name, value) in below {
        places(value, &[at.as_slice(), &[name]].concat(), all);
    }
}

fn pointer(place: &[String]) -> String {
    place.iter().map(|name| format!("/{name}")).collect()
}

/// Returns every other document that differs from this one at one place: a changed value, an additional entry,
/// a missing entry.
fn neighbours(document: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    places(document, &Vec::new(), &mut all);
    let mut neighbours = Vec::new();
    for place in all {
        let at = pointer(&place);
        let mut changed = document.clone();
        let Some(value) = changed.pointer_mut(&at) else {
            continue;
        };
        match value {
            Value::Object(fields) => {
                fields.insert("added".into(), json!({ "added": "1" }));
                neighbours.push((format!("{at}: map added"), changed.clone()));
                let fields = changed.pointer_mut(&at).and_then(Value::as_object_mut);
                fields.unwrap().insert("added".into(), "1".into());
            }
            Value::Array(items) => items.push("added".into()),
            Value::Bool(flag) => *flag = !*flag,
            Value::Number(number) => *value = (number.as_u64().unwrap() + 1).into(),
            Value::String(text) => text.push('x'),
            Value::Null => *value = "x".into(),
        }
        neighbours.push((format!("{at}: changed"), changed));
        let Some((name, above)) = place.split_last() else {
            continue;
        };
        let mut lacking = document.clone();
        match lacking.pointer_mut(&pointer(above)) {
            Some(Value::Object(fields)) => drop(fields.shift_remove(name)),
            Some(Value::Array(items)) => drop(items.remove(name.parse().unwrap())),
            _ => continue,
        }
        neighbours.push((format!("{at}: lacking"), lacking));
    }
    neighbours
}

/// Returns whether the cloud may make this change, or the change means the same.
fn is_free(change: &str) -> bool {
    let free = [
        format!("/{DEVICE}/name: "),
        format!("/{DEVICE}/apps/{APP}/name: "),
        format!("/{DEVICE}/config/SUPERVISOR_POLL_INTERVAL: "),
        format!("/{DEVICE}/config/SUPERVISOR_DELTA: "),
        // A variable that means nothing to the device is dropped.
        format!("/{DEVICE}/config: "),
        format!("/{DEVICE}/apps/{APP}/releases/c1/services/web/environment/GREETING: "),
        // The document has the defaults, so leaving them out means the same.
        format!("/{DEVICE}/apps/{APP}/is_host: lacking"),
        format!("/{DEVICE}/apps/{APP}/class: lacking"),
    ];
    // Fields that no device reads.
    let unread = [
        String::new(),
        format!("/{DEVICE}"),
        format!("/{DEVICE}/apps/{APP}"),
        format!("/{DEVICE}/apps/{APP}/releases"),
        format!("/{DEVICE}/apps/{APP}/releases/c1"),
        format!("/{DEVICE}/apps/{APP}/releases/c1/services/web"),
    ];
    let (at, what) = change.rsplit_once(": ").unwrap();
    let is_added = document().pointer(at).is_some_and(Value::is_object) && what != "lacking";
    free.iter().any(|free| change.starts_with(free.as_str()))
        || (is_added && unread.iter().any(|unread| unread == at))
}

#[test]
fn every_change_of_one_field_of_a_target_is_refused() {
    let owner = Owner::new();
    let mut document = document();
    owner.sign(&mut document, &allowances());
    let accepted = owner.judge(&document, &nothing(), NOW).unwrap();
    let mut refused = 0;
    for (change, other) in neighbours(&document) {
        let accepts = |accepted: &AcceptedReleases| {
            parse(&other).is_some() && owner.judge(&other, accepted, NOW).is_ok()
        };
        if is_free(&change) {
            continue;
        }
        assert!(!accepts(&nothing()), "{change}");
        // An accepted release is checked against its statement just like a new one.
        assert!(!accepts(&accepted), "{change}, once accepted");
        refused += 1;
    }
    assert!(refused > 60, "{refused}");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn compose_fields_are_accepted_only_as_signed(
        signed_fields in prop::collection::btree_map("[a-z]{1,8}", any_value(), 0..4),
        other_fields in prop::collection::btree_map("[a-z]{1,8}", any_value(), 0..4),
    ) {
        let owner = Owner::new();
        let put = |document: &mut Value, fields: &BTreeMap<String, Value>| {
            // The key `image` of a composition is not read.
            let fields = fields.iter().filter(|(name, _)| *name != "image");
            let fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
            release(document)["services"]["web"]["composition"] = Value::Object(fields);
        };
        let mut document = document();
        put(&mut document, &signed_fields);
        owner.sign(&mut document, &allowances());
        prop_assert!(owner.judge(&document, &nothing(), NOW).is_ok());
        put(&mut document, &other_fields);
        let same = signed_fields == other_fields;
        prop_assert_eq!(owner.judge(&document, &nothing(), NOW).is_ok(), same);
    }

    #[test]
    fn no_text_makes_the_judge_panic(text in ".{0,200}") {
        let owner = Owner::new();
        let mut document = document();
        *signed(&mut document) = text.clone().into();
        prop_assert!(owner.judge(&document, &nothing(), NOW).is_err());
        *signed(&mut document) = owner.sign_text(&text).into();
        prop_assert!(owner.judge(&document, &nothing(), NOW).is_err());
    }
}
