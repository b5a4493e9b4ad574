use model::NetworkConfig;

use super::*;

fn target() -> TargetInForce {
    let api_network = DesiredNetwork {
        engine_name: "api".to_owned(),
        config: NetworkConfig::default(),
        digest: "api".to_owned(),
    };
    TargetInForce::new(None, None, api_network, ReleaseTrials::default())
}

#[test]
fn a_new_target_begins_without_what_was_learned_under_the_last_one_and_force_stays() {
    let mut target = target();
    let image: ImageRef = "web:1".parse().unwrap();
    target.begin_force();
    target.image_pulled(image.clone());
    target.set_image_kind(image.clone(), EngineKind::Docker);
    target.replace(DesiredState::default(), Settings::default());
    assert!(!target.has_downloaded && !target.lost_pulled_image(&image));
    assert!(target.image_kinds.is_empty());
    assert!(target.overrides_locks());
}

#[test]
fn force_lasts_until_the_target_is_reached_and_the_setting_for_longer() {
    let mut target = target();
    target.begin_force();
    target.image_pulled("web:1".parse().unwrap());
    target.reached();
    assert!(!target.overrides_locks());
    assert!(!target.has_downloaded);
    target.settings.override_locks = true;
    target.reached();
    assert!(target.overrides_locks());
}

#[test]
fn force_ends_when_a_target_comes_without_it() {
    let mut target = target();
    target.begin_force();
    assert!(target.is_forced() && target.overrides_locks());
    target.end_force();
    assert!(!target.is_forced() && !target.overrides_locks());
}

#[test]
fn no_target_is_in_force_while_local_mode_is_left_and_the_last_one_of_the_cloud_follows_once() {
    let active = |delta| ActiveTarget {
        target: None,
        desired: DesiredState::default(),
        settings: Settings {
            delta,
            ..Settings::default()
        },
    };
    let mut target = target();
    target.set_empty();
    assert_eq!(target.desired(), Some(&DesiredState::default()));
    target.suspend(Some(active(false)));
    assert_eq!(target.desired(), None);
    target.resume_with(active(true));
    assert!(target.resume().is_some_and(|it| it.settings.delta));
    assert!(target.resume().is_none());
}

#[test]
fn registries_are_queried_again_for_an_image_whose_engine_is_forgotten() {
    let mut target = target();
    target.set_image_kind("web:1".parse().unwrap(), EngineKind::Docker);
    target.forget_image_kinds();
    let mut current = CurrentState::default();
    target.describe(&mut current);
    assert!(current.image_kinds.is_empty());
}

#[test]
fn without_a_target_no_release_is_examined_or_replaced() {
    let mut target = target();
    let app: AppUuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let steps = target.look_at_releases(&BTreeMap::new(), None, Instant::now());
    assert!(steps.is_empty());
    assert!(!target.go_back(&app, &[]));
    assert!(!target.try_releases_again());
}

#[test]
fn a_pulled_image_that_the_engine_lacks_is_lost_once() {
    let mut target = target();
    let image: ImageRef = "web:1".parse().unwrap();
    target.image_pulled(image.clone());
    assert!(target.lost_pulled_image(&image));
    assert!(!target.lost_pulled_image(&image));
}

#[test]
fn that_there_are_no_deltas_is_noted_once_and_only_if_deltas_are_requested() {
    let mut target = target();
    assert!(!target.note_deltas());
    target.settings.delta = true;
    assert!(target.note_deltas());
    assert!(!target.note_deltas());
}
