//! Requests and their answers, the same from both databases.

use data::query::{Caller, QueryError};
use data::testing::{on_both, on_both_at, sql};
use serde_json::{Value, json};

use super::{ann, bob, get, variants};
use crate::fixture;

async fn answers(caller: fn() -> Caller, table: &[(&str, Value)]) {
    on_both_at(async |at, database| {
        fixture::cloud(&database).await;
        for (url, expected) in table {
            let answer = get(&database, &caller(), url).await;
            assert_eq!(answer.as_ref(), Ok(expected), "{url}");
        }
        let urls: Vec<&str> = table.iter().map(|(url, _)| *url).collect();
        variants::agree(&at, &caller(), &urls).await;
    })
    .await;
}

fn ids(ids: &[i64]) -> Value {
    ids.iter().map(|id| json!({"id": id})).collect()
}

#[tokio::test]
async fn a_row_reads_as_its_types_do() {
    let table = [
        (
            "/device(7)?$select=id,device_name,belongs_to__application,should_be_operated_by__release,is_online,created_at,memory_usage",
            json!([{"id": 7, "device_name": "calm-river", "belongs_to__application": {"__id": 4},
                "should_be_operated_by__release": null, "is_online": true,
                "created_at": "2026-01-02T03:04:05.678Z", "memory_usage": null}]),
        ),
        (
            "/image?$select=image_size,status&$filter=id eq 90",
            json!([{"image_size": "9007199254740993", "status": "success"}]),
        ),
        (
            "/release(77)?$select=composition,is_final,semver,raw_version",
            json!([{"composition": {"services": {"main": {"restart": "always"}}},
                "is_final": true, "semver": "1.2.3", "raw_version": "1.2.3+rev4.prod"}]),
        ),
        (
            "/release(78)?$select=is_final,semver,raw_version,version",
            json!([{"is_final": false, "semver": "1.2.0-beta.1",
                "raw_version": "1.2.0-beta.1.1767323045678",
                "version": {"raw": "1.2.0-beta.1.1767323045678", "major": 1, "minor": 2, "patch": 0,
                    "prerelease": ["beta", 1, 1767323045678_i64], "build": [],
                    "version": "1.2.0-beta.1.1767323045678"}}]),
        ),
        (
            "/device(7)?$select=should_be_running__release,overall_status,overall_progress",
            json!([{"should_be_running__release": {"__id": 78}, "overall_status": "operational",
                "overall_progress": null}]),
        ),
        (
            "/device(8)?$select=overall_status,device_name",
            json!([{"overall_status": "configuring", "device_name": "it's 100%_cafe\u{e9} & co; (x), y+z"}]),
        ),
        (
            "/device(7)?$select=id,belongs_to__application&$format=json;odata.metadata=full",
            json!([{"id": 7,
                "belongs_to__application": {"__id": 4, "__deferred": {"uri": "/v7/application(@id)?@id=4"}},
                "__metadata": {"uri": "/v7/device(@id)?@id=7"}}]),
        ),
    ];
    answers(ann, &table).await;
}

#[tokio::test]
async fn the_raw_version_says_what_sets_a_release_apart() {
    on_both(async |database| {
        fixture::cloud(&database).await;
        // The parts after `1.2.3`; a draft has no revision.
        for (prerelease, build, revision, variant, raw) in [
            ("", "", Some(0), "", "1.2.3"),
            ("", "", Some(4), "", "1.2.3+rev4"),
            ("beta", "", Some(4), "prod", "1.2.3-beta+rev4.prod"),
            ("", "", Some(0), "prod", "1.2.3+prod"),
            ("", "linux", Some(1), "dev", "1.2.3+linux.rev1.dev"),
            ("", "rev4", Some(4), "", "1.2.3+rev4"),
            ("", "", None, "", "1.2.3-1794000000000"),
            ("pre", "", None, "", "1.2.3-pre.1794000000000"),
            ("pre", "b", None, "dev", "1.2.3-pre.1794000000000+b.dev"),
        ] {
            let update = sql(
                "UPDATE release SET semver_prerelease = ?, semver_build = ?, revision = ?, variant = ?, \
                 created_at = 1794000000000 WHERE id = 77",
            );
            let update = update.with(prerelease).with(build).with(revision).with(variant);
            database.execute(&update).await.unwrap();
            let answer = get(&database, &ann(), "/release(77)?$select=raw_version").await;
            assert_eq!(answer, Ok(json!([{ "raw_version": raw }])));
        }
    })
    .await;
}

#[tokio::test]
async fn records_are_addressed_by_every_key_and_along_links() {
    let one = |id| ids(&[id]);
    let table = [
        ("/device(7)?$select=id", one(7)),
        ("/device('7')?$select=id", one(7)),
        ("/device(id=7)?$select=id", one(7)),
        (
            "/device(uuid='00000000000000000000000000000007')?$select=id",
            one(7),
        ),
        (
            "/device(uuid=@u)?@u='00000000000000000000000000000007'&$select=id",
            one(7),
        ),
        ("/device(99)", json!([])),
        ("/application(slug='acme/pump')?$select=id", one(4)),
        ("/application(slug='acme%2Fpump')?$select=id", one(4)),
        (
            "/device_tag(device=7,tag_key='zone')?$select=value",
            json!([{"value": "it's 100%"}]),
        ),
        (
            "/device__has__tag_key(device=7,tag_key='zone')?$select=id",
            one(3),
        ),
        (
            "/application(4)/owns__device?$select=id&$orderby=id desc",
            ids(&[8, 7]),
        ),
        ("/application(4)/owns__device/$count", json!(2)),
        (
            "/application(4)/owns__device(7)/device_tag?$select=tag_key",
            json!([{"tag_key": "env"}, {"tag_key": "zone"}]),
        ),
        (
            "/device(7)/belongs_to__application/organization?$select=handle",
            json!([{"handle": "acme"}]),
        ),
        (
            "/release(77)/$links/belongs_to__application",
            json!([{"url": "application(4)"}]),
        ),
        ("/device/$count", json!(2)),
        ("/device/$count?$filter=is_online eq true", json!(1)),
        (
            "/device/$count?$filter=is_online eq true and is_online eq false",
            json!(0),
        ),
    ];
    answers(ann, &table).await;
}

#[tokio::test]
async fn filters_compare_as_the_language_says() {
    let table: Vec<(String, Value)> = [
        // Null is a value: it equals itself, and differs from others.
        ("status eq null", &[8][..]),
        ("status ne null", &[7]),
        ("status ne 'Idle'", &[8]),
        ("not(status eq 'Idle')", &[8]),
        ("not(status gt 'A')", &[8]),
        ("status in ('Idle',null)", &[7, 8]),
        ("not(status in ('Idle'))", &[8]),
        ("status gt null", &[]),
        // Constants are converted to what they are compared with.
        ("belongs_to__application eq '4'", &[7, 8]),
        ("is_online eq 'true'", &[7]),
        ("is_online eq 1", &[7]),
        ("created_at eq '2026-01-02T03:04:05.678Z'", &[7, 8]),
        ("created_at ge datetime'2026-01-03T00:00:00Z'", &[]),
        ("created_at gt (now() sub duration'P2D')", &[7, 8]),
        ("created_at gt (now() sub duration'PT23H')", &[]),
        ("id in ('7')", &[7]),
        // Wildcards have no meaning, and case matters.
        ("contains(device_name,'%25')", &[8]),
        ("contains(device_name,'0%25_c')", &[8]),
        ("startswith(device_name,'it''s 100%25')", &[8]),
        ("startswith(device_name,'IT')", &[]),
        ("startswith(tolower(device_name),'it')", &[8]),
        ("endswith(device_name,'y%2Bz')", &[8]),
        ("endswith(device_name,'')", &[7, 8]),
        ("startswith(status,'I') or not(startswith(status,'I'))", &[7, 8]),
        ("substringof('river',device_name)", &[7]),
        ("indexof(device_name,'river') eq 5", &[7]),
        ("substring(device_name,5) eq 'river'", &[7]),
        ("substring(device_name,5,2) eq 'ri'", &[7]),
        ("length(device_name) eq 10", &[7]),
        ("concat(concat(device_name,'-'),status) eq 'calm-river-Idle'", &[7]),
        ("replace(device_name,'calm','wild') eq 'wild-river'", &[7]),
        ("trim('  x ') eq 'x' and id eq 7", &[7]),
        ("toupper(status) eq 'IDLE'", &[7]),
        ("year(created_at) eq 2026 and month(created_at) eq 1 and day(created_at) eq 2 and id eq 7", &[7]),
        ("hour(created_at) eq 3 and minute(created_at) eq 4 and second(created_at) eq 5 and id eq 7", &[7]),
        ("fractionalseconds(created_at) eq 0.678 and id eq 7", &[7]),
        ("date(created_at) eq datetime'2026-01-02' and id eq 7", &[7]),
        ("time(created_at) lt duration'PT4H' and id eq 7", &[7]),
        ("totalseconds(now() sub created_at) eq 86400 and id eq 7", &[7]),
        ("mindatetime() lt created_at and maxdatetime() gt created_at and id eq 7", &[7]),
        ("id add 1 eq 8", &[7]),
        ("id mod 2 eq 1 and id div 2 eq 3 and id mul -1 lt 0 and -id eq -7", &[7]),
        ("id div 0 eq null", &[7, 8]),
        ("round(2.5) eq 3 and floor(2.5) eq 2 and ceiling(2.5) eq 3 and id eq 7", &[7]),
        ("round(-2.5) eq -3 and id eq 7", &[7]),
        ("cast(id,'Edm.String') eq '8'", &[8]),
        ("isof(id,'Edm.Int64') and id eq 8", &[8]),
        // `and` before `or`.
        ("id eq 8 or id eq 7 and id eq 9", &[8]),
        // Links: as numbers, along `any` and `all`, and as paths.
        ("belongs_to__application in (4,5)", &[7, 8]),
        ("belongs_to__application/any(a:a/slug eq 'acme/pump')", &[7, 8]),
        ("belongs_to__application/slug eq 'acme/pump'", &[7, 8]),
        ("belongs_to__application/organization/handle eq 'acme'", &[7, 8]),
        ("device_tag/any(t:t/tag_key eq 'env' and t/value eq 'prod')", &[7]),
        ("device_tag/any(t:t/tag_key eq 'zone' and t/value eq 'prod')", &[]),
        ("device_tag/any(is:is/tag_key eq 'zone')", &[7]),
        ("device_tag/any(t:true)", &[7, 8]),
        ("device_tag/any(t:1 eq 1)", &[7, 8]),
        ("not(device_tag/any(t:t/tag_key eq 'zone'))", &[8]),
        ("device_tag/all(t:t/tag_key eq 'env')", &[8]),
        ("image_install/all(i:i/status eq 'Running')", &[7, 8]),
        ("device_tag/$count gt 1", &[7]),
        ("device_tag/$count($filter=value eq 'dev') eq 1", &[8]),
        ("device_tag(tag_key='zone')/value eq 'it''s 100%25'", &[7]),
        ("device__has__tag_key/any(t:t/value eq 'dev')", &[8]),
        ("device_tag/any(t:t/device eq 8)", &[8]),
        ("device_tag/any(t:t/device/any(d:d/device_name eq 'calm-river'))", &[7]),
        ("should_be_running__release/any(r:r/semver eq '1.2.0-beta.1')", &[7]),
        ("overall_status eq 'operational'", &[7]),
        ("true", &[7, 8]),
        ("false", &[]),
    ]
    .into_iter()
    .map(|(filter, found)| (format!("/device?$select=id&$orderby=id asc&$filter={filter}"), ids(found)))
    .collect();
    let table: Vec<(&str, Value)> = table
        .iter()
        .map(|(url, ids)| (url.as_str(), ids.clone()))
        .collect();
    answers(ann, &table).await;
}

#[tokio::test]
async fn lists_are_ordered_and_cut_alike() {
    let table = [
        ("/device?$select=id&$orderby=status asc", ids(&[7, 8])),
        ("/device?$select=id&$orderby=status desc", ids(&[8, 7])),
        (
            "/device?$select=id&$orderby=is_of__device_type",
            ids(&[7, 8]),
        ),
        (
            "/device?$select=id&$orderby=device_tag/$count",
            ids(&[8, 7]),
        ),
        (
            "/device?$select=id&$orderby=device_tag/$count($filter=value eq 'dev') desc",
            ids(&[8, 7]),
        ),
        (
            "/device?$select=id&$orderby=device_tag(tag_key='env')/value desc",
            ids(&[7, 8]),
        ),
        (
            "/device?$select=id&$orderby=belongs_to__application/app_name asc,id desc",
            ids(&[8, 7]),
        ),
        ("/device?$select=id&$top=1", ids(&[7])),
        ("/device?$select=id&$top=0", ids(&[])),
        ("/device?$select=id&$skip=1", ids(&[8])),
        ("/device?$select=id&$skip=1&$top=5", ids(&[8])),
        (
            "/device?$select=id&$skip=18446744073709551615&$top=18446744073709551615",
            ids(&[]),
        ),
    ];
    answers(ann, &table).await;
}

#[tokio::test]
async fn expansions_are_arrays_with_options_of_their_own_for_each_parent() {
    let table = [
        (
            "/device?$select=id&$expand=belongs_to__application($select=slug),is_pinned_on__release($select=id)",
            json!([
                {"id": 7, "belongs_to__application": [{"slug": "acme/pump"}], "is_pinned_on__release": [{"id": 78}]},
                {"id": 8, "belongs_to__application": [{"slug": "acme/pump"}], "is_pinned_on__release": []},
            ]),
        ),
        (
            "/device?$select=id&$expand=device_tag($select=tag_key;$orderby=tag_key desc;$top=1)",
            json!([
                {"id": 7, "device_tag": [{"tag_key": "zone"}]},
                {"id": 8, "device_tag": [{"tag_key": "env"}]},
            ]),
        ),
        (
            "/device?$select=id&$expand=device_tag($select=tag_key;$skip=1)",
            json!([{"id": 7, "device_tag": [{"tag_key": "zone"}]}, {"id": 8, "device_tag": []}]),
        ),
        (
            "/device?$select=id&$expand=belongs_to__application($select=id;$filter=app_name eq 'valve')",
            json!([{"id": 7, "belongs_to__application": []}, {"id": 8, "belongs_to__application": []}]),
        ),
        (
            "/application(4)?$select=id&$expand=owns__device/$count($filter=is_online eq true)",
            json!([{"id": 4, "owns__device": 1}]),
        ),
        (
            "/application(5)?$select=id&$expand=owns__device/$count",
            json!([{"id": 5, "owns__device": 0}]),
        ),
        (
            "/application(4)?$select=id&$expand=owns__device($select=id;$expand=device_tag($select=value;$expand=device($select=id;$expand=belongs_to__application($select=id;$expand=organization($select=handle)))))&$top=1",
            json!([{"id": 4, "owns__device": [
                {"id": 7, "device_tag": [
                    {"value": "prod", "device": [{"id": 7, "belongs_to__application": [{"id": 4, "organization": [{"handle": "acme"}]}]}]},
                    {"value": "it's 100%", "device": [{"id": 7, "belongs_to__application": [{"id": 4, "organization": [{"handle": "acme"}]}]}]},
                ]},
                {"id": 8, "device_tag": [
                    {"value": "dev", "device": [{"id": 8, "belongs_to__application": [{"id": 4, "organization": [{"handle": "acme"}]}]}]},
                ]},
            ]}]),
        ),
        (
            "/device(7)?$select=id&$expand=device__has__tag_key($select=id)",
            json!([{"id": 7, "device__has__tag_key": [{"id": 1}, {"id": 3}]}]),
        ),
        (
            "/device(7)?$select=id&$expand=belongs_to__application/organization",
            json!([{"id": 7, "belongs_to__application": null}]),
        ),
    ];
    // The last one is the old form: all fields of both.
    let (last, rest) = table.split_last().expect("rows");
    answers(ann, rest).await;
    on_both(async |database| {
        fixture::cloud(&database).await;
        let answer = get(&database, &ann(), last.0).await.expect(last.0);
        assert_eq!(
            answer[0]["belongs_to__application"][0]["slug"],
            json!("acme/pump")
        );
        assert_eq!(
            answer[0]["belongs_to__application"][0]["organization"][0]["handle"],
            json!("acme")
        );
    })
    .await;
}

#[tokio::test]
async fn everybody_sees_their_own_fleets_and_public_ones() {
    answers(
        ann,
        &[
            ("/application?$select=id", ids(&[4, 5, 7])),
            (
                "/application?$select=id&$filter=is_directly_accessible_by__user/any(d:true)",
                ids(&[4, 5]),
            ),
            (
                "/application?$select=id&$filter=is_directly_accessible_by__user/any(dau:1 eq 1)",
                ids(&[4, 5]),
            ),
            (
                "/application?$select=id&$filter=organization/any(o:o/handle eq 'acme')",
                ids(&[4, 5]),
            ),
            (
                "/application?$select=id&$filter=organization/any(o:o/handle eq 'other')",
                ids(&[]),
            ),
            ("/release?$select=id", ids(&[77, 78, 79, 80])),
            ("/device?$select=id", ids(&[7, 8])),
            ("/device(9)", json!([])),
            ("/application(6)", json!([])),
        ],
    )
    .await;
    answers(
        bob,
        &[
            ("/application?$select=id", ids(&[6, 7])),
            ("/device?$select=id", ids(&[9, 10])),
        ],
    )
    .await;
    answers(
        Caller::guest,
        &[
            ("/application?$select=id", ids(&[7])),
            ("/release?$select=id", ids(&[80])),
        ],
    )
    .await;
}

#[tokio::test]
async fn errors_of_a_query_have_their_position() {
    let table = [
        (
            "/device?$filter=nam eq 1",
            16,
            "`device` has no field `nam`",
        ),
        ("/device?$select=id,nam", 19, "`device` has no field `nam`"),
        ("/device?$expand=nam", 16, "`device` has no link `nam`"),
        ("/device?$orderby=nam", 17, "`device` has no field `nam`"),
        ("/device?$select=device_tag", 16, "name it in `$expand`"),
        ("/device?$filter=device_tag eq 1", 16, "has many records"),
        (
            "/device?$filter=device_tag/value eq 'x'",
            16,
            "has many records",
        ),
        (
            "/device?$filter=id eq 'seven'",
            22,
            "the text `seven` is used where a whole number is needed",
        ),
        (
            "/device?$filter=device_name eq 7",
            31,
            "a whole number is used where a text is needed",
        ),
        (
            "/device?$filter=created_at gt 'soon'",
            30,
            "`soon` is not a time",
        ),
        (
            "/device?$filter=id",
            16,
            "a whole number is used where `true` or `false` is needed",
        ),
        (
            "/device?$filter=api_secret eq 'x'",
            16,
            "`device` has no field `api_secret`",
        ),
        (
            "/device?$select=api_secret",
            16,
            "`device` has no field `api_secret`",
        ),
        (
            "/device?$orderby=api_secret",
            17,
            "`device` has no field `api_secret`",
        ),
        (
            "/device(api_secret='x')",
            8,
            "`device` has no key of api_secret",
        ),
        (
            "/device(device_name='x')",
            8,
            "`device` has no key of device_name",
        ),
        (
            "/device_tag(device=7)",
            12,
            "`device_tag` has no key of device",
        ),
        (
            "/device('x')",
            0,
            "the text `x` is used where a whole number is needed",
        ),
        (
            "/release?$filter=composition eq 'x'",
            32,
            "is used where an object or array is needed",
        ),
        (
            "/device?$filter=device_name add 1 eq 2",
            16,
            "this operator does not apply",
        ),
        (
            "/device?$filter=device_name eq 'a%00b'",
            31,
            "the character NUL",
        ),
        (
            "/device?$expand=device_tag,device_tag",
            27,
            "expanded twice",
        ),
    ];
    on_both(async |database| {
        for (url, at, message) in table {
            match get(&database, &ann(), url).await {
                Err(QueryError::Refused(error)) => {
                    assert!(error.message.contains(message), "{url}: {error}");
                    assert_eq!(error.at, at, "{url}: {error}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
        for url in ["/nothing", "/my_application?$select=id"] {
            let answer = get(&database, &ann(), url).await;
            assert!(
                matches!(answer, Err(QueryError::NoRights(_))),
                "{url}: {answer:?}"
            );
        }
    })
    .await;
}
