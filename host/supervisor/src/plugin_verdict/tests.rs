use super::*;

#[test]
fn only_a_report_about_this_content_is_a_verdict() {
    let refused = |in_use: Option<&str>| ReportedState::Refused {
        reason: "why".to_owned(),
        in_use: in_use.map(str::to_owned),
    };
    for (mut report, expected) in [
        (
            json!({ "digest": "new", "state": "running" }),
            ReportedState::Runs,
        ),
        (
            json!({ "digest": "old", "state": "running" }),
            ReportedState::Loading,
        ),
        (
            json!({ "digest": "new", "state": "loading" }),
            ReportedState::Loading,
        ),
        (
            json!({ "digest": "new", "state": "other-board" }),
            ReportedState::OtherBoard,
        ),
        (
            json!({ "digest": "new", "refusedDigest": "new", "state": "refused", "refused": "why" }),
            refused(None),
        ),
        (
            json!({ "digest": "old", "refusedDigest": "new", "state": "running", "refused": "why", "version": "1.0.0" }),
            refused(Some("1.0.0")),
        ),
        // The supervisor has not noticed the new content yet.
        (
            json!({ "digest": "old", "refusedDigest": "older", "state": "running", "refused": "why" }),
            ReportedState::Loading,
        ),
        (
            json!({ "digest": "new", "refusedDigest": "older", "state": "running", "refused": "why" }),
            ReportedState::Loading,
        ),
        // It must not read the file.
        (
            json!({ "digest": "", "state": "refused", "refused": "why" }),
            refused(None),
        ),
    ] {
        report["file"] = "/plugins/a.wasm".into();
        let found = find_state(
            std::slice::from_ref(&report),
            Path::new("/plugins/a.wasm"),
            "new",
        );
        assert_eq!(found, expected, "{report}");
    }
}

#[test]
fn a_printed_command_quotes_paths_for_the_shell() {
    let placed = PlacedFile {
        plugin: "a",
        version: "1.0.0".to_owned(),
        file: Path::new("/srv/my plugins/a.wasm"),
        digest: "new",
        state_dir: Path::new("/srv/owner's state"),
    };
    let refused = |in_use: Option<&str>| ReportedState::Refused {
        reason: "why".to_owned(),
        in_use: in_use.map(str::to_owned),
    };
    for (state, expected) in [
        (refused(None), "`rm '/srv/my plugins/a.wasm'`"),
        (
            refused(Some("0.9.0")),
            r"`supervisor plugins rollback a --state-dir '/srv/owner'\''s state'`",
        ),
        (
            ReportedState::Loading,
            r"`supervisor plugins list --state-dir '/srv/owner'\''s state'`",
        ),
    ] {
        let error = placed.explain(&state, Duration::ZERO).to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn a_result_for_programs_has_the_verdict_or_the_reason_why_there_is_none() {
    let placed = PlacedFile {
        plugin: "a",
        version: "1.0.0".to_owned(),
        file: Path::new("/plugins/a.wasm"),
        digest: "new",
        state_dir: Path::new("/state"),
    };
    let refused = Err(anyhow!("why").context("the supervisor refuses a"));
    for (verdict, expected) in [
        (Ok(Verdict::Running), json!({ "state": "running" })),
        (
            Ok(Verdict::NoSupervisor),
            json!({ "state": "no-supervisor" }),
        ),
        (Ok(Verdict::NotAwaited), json!({ "state": "not-awaited" })),
        (
            refused,
            json!({ "state": "not-running", "error": "the supervisor refuses a: why" }),
        ),
    ] {
        let report = placed.json(json!({ "previousVersion": null }), &verdict);
        let mut whole = json!({
            "name": "a", "version": "1.0.0", "file": "/plugins/a.wasm", "digest": "new", "previousVersion": null,
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(expected.as_object().unwrap().clone());
        assert_eq!(report, whole);
    }
}

#[test]
fn a_file_is_found_by_its_path_or_its_content() {
    let report =
        |file: &str, digest: &str| json!({ "file": file, "digest": digest, "state": "running" });
    let file = Path::new("/plugins/a.wasm");
    let other = report("/plugins/b.wasm", "other");
    for (plugins, expected) in [
        (vec![], ReportedState::Unlisted),
        (vec![other.clone()], ReportedState::Unlisted),
        (
            vec![other.clone(), report("/mnt/a.wasm", "new")],
            ReportedState::Runs,
        ),
        (
            vec![other, report("/plugins/a.wasm", "old")],
            ReportedState::Loading,
        ),
    ] {
        assert_eq!(find_state(&plugins, file, "new"), expected, "{plugins:?}");
    }
}
