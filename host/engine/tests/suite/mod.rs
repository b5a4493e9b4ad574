//! The promises of every engine, as tests over the trait. A test binary provides a [`Fixture`] for
//! its engine and calls [`engine_suite`]; each test then gets its own device on that engine.

#![allow(dead_code, reason = "each test binary uses its part of the suite")]
#![allow(unreachable_pub, reason = "a module of several test binaries")]

pub mod fixture;
pub mod registry_proxy;
pub mod service_config;

mod containers;
mod events;
mod health;
mod images;
mod logs;
mod networks;
mod ownership;
mod volumes;

pub use containers::*;
pub use events::*;
pub use fixture::*;
pub use health::*;
pub use images::*;
pub use logs::*;
pub use networks::*;
pub use ownership::*;
pub use volumes::*;

/// Writes one test for each promise. `$open` is an async function that opens a fixture for a new
/// device, or returns the reason why this machine cannot.
#[macro_export]
macro_rules! engine_suite {
    ($open:path) => {
        $crate::engine_suite! { @tests $open;
            engine_reports_its_version,
            created_container_is_listed_with_its_definition,
            created_container_does_not_run_until_it_is_started,
            starting_a_running_container_is_no_error,
            stopped_container_stays_stopped_whatever_its_restart_policy,
            stopping_a_stopped_or_missing_container_is_no_error,
            stopped_container_starts_again,
            removing_takes_running_and_stopped_containers_and_is_no_error_twice,
            renamed_container_keeps_its_id,
            container_name_in_use_is_a_conflict,
            exit_code_of_a_finished_container_is_listed,
            restart_policies_start_what_they_should,
            variables_reach_the_program_and_are_listed,
            starting_a_missing_container_is_not_found,
            logs_from_the_start_hold_every_line_of_both_outputs,
            logs_since_a_moment_begin_with_its_lines,
            logs_go_on_over_a_restart_and_end_with_the_container,
            long_lines_come_in_pieces,
            bytes_that_are_not_text_do_not_stop_the_log,
            events_report_every_change_of_a_container,
            service_that_answers_its_check_is_healthy_while_it_runs,
            service_that_fails_its_check_is_unhealthy_after_its_retries,
            service_without_a_check_is_neither_healthy_nor_unhealthy,
            volume_keeps_its_data_across_containers,
            making_a_volume_twice_is_no_error,
            removing_a_volume_that_is_gone_is_no_error,
            volume_in_use_is_not_removed,
            volume_that_is_mounted_read_only_cannot_be_written,
            services_of_a_network_find_each_other_by_name,
            services_of_different_networks_do_not_find_each_other,
            service_joins_all_its_networks_before_it_starts,
            making_a_network_twice_is_no_error,
            removing_a_network_that_is_gone_is_no_error,
            published_port_is_reached_from_the_host,
            objects_of_another_device_are_invisible,
            objects_of_another_device_are_not_touched,
            names_of_another_device_are_a_conflict,
            objects_under_a_former_uuid_of_the_device_are_still_its_own,
            pull_reports_progress_that_never_falls,
            pulling_an_existing_image_sends_no_request,
            pull_of_what_the_registry_lacks_is_not_found,
            pull_with_credentials_proves_who_we_are,
            dropping_a_pull_stops_the_transfer,
            removed_image_is_gone_and_removing_it_again_is_no_error,
            image_in_use_is_not_removed,
        }
    };
    (@tests $open:path; $($test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::suite::run($open(), |fixture| async move {
                    $crate::suite::$test(&*fixture).await;
                });
            }
        )*
    };
}
