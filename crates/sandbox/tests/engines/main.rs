//! The drivers for Docker and Podman keep what every runtime promises, on real engines.
//!
//! Each part of the contract runs as somebody without any right, as whom most people use an engine; where root runs the
//! tests, that is somebody else. `scripts/engines` starts the engines.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests start themselves as another user and stop at the first surprise"
)]

mod contained;
mod engine;
mod failures;
mod gate;

/// Every part of the contract, once for each engine.
macro_rules! contract {
    ($($module:ident { $($part:ident)* })*) => {
        mod docker {
            $(mod $module { $(
                #[test]
                fn $part() {
                    crate::engine::holds(
                        fluffy_sandbox::EngineKind::Docker,
                        concat!("docker::", stringify!($module), "::", stringify!($part)),
                        fluffy_testkit::runtime_contract::$part,
                    );
                }
            )* })*
        }
        mod podman {
            $(mod $module { $(
                #[test]
                fn $part() {
                    crate::engine::holds(
                        fluffy_sandbox::EngineKind::Podman,
                        concat!("podman::", stringify!($module), "::", stringify!($part)),
                        fluffy_testkit::runtime_contract::$part,
                    );
                }
            )* })*
        }
    };
}

contract! {
    confinement {
        p1_changes_of_an_overlay_are_in_its_volume_and_nowhere_else
        p1_of_a_workspace_in_parts_nothing_else_is_seen_or_changed
        p1_a_read_only_workspace_is_not_changed_and_output_is_in_the_volume
        p1_nothing_but_the_volume_can_be_written_to
        p1_links_in_what_is_shown_lead_nowhere_outside
        p1_layers_hide_each_other_and_stay_as_they_are
        p2_only_what_is_shown_is_seen
        p2_a_home_is_empty_private_and_writable
        p2_the_environment_is_the_jobs_own
        p2_only_its_own_processes_are_seen
        p5_a_job_whose_surroundings_are_lacking_does_not_run
        p5_a_program_that_cannot_be_run_is_named
        p5_a_volume_serves_once
        lesson_l21_no_caller_gets_more_than_the_template_gives
    }
    lifetime {
        p3_a_job_ends_by_its_deadline_whatever_it_does
        p3_a_job_that_steals_its_own_output_ends_by_its_deadline
        p4_nothing_a_job_started_outlives_it
        p4_nothing_outlives_a_sandbox_that_is_taken_away
        p6_a_sandbox_can_be_taken_away_in_every_state_and_again
        p6_a_sandbox_that_is_taken_away_while_it_starts_does_not_run_on
        p6_a_volume_outlives_its_sandbox
        a_job_that_is_stopped_may_end_by_itself
        a_job_that_does_not_obey_is_killed_after_the_grace
        a_paused_job_makes_no_progress
        sbx_8_a_job_is_told_of_a_pause_and_of_its_end
        sbx_8_nobody_puts_a_pause_off_for_longer_than_its_grace
        a_pause_does_not_count_towards_the_deadline
    }
    states {
        a_sandbox_goes_through_its_states_in_order
        what_a_state_does_not_allow_is_refused
        a_sandbox_whose_job_could_not_run_has_failed
        a_runtime_that_is_ready_runs_jobs_at_once
        every_sandbox_has_a_name_of_its_own
        several_may_wait_for_one_end
    }
    streams {
        both_streams_are_captured_each_in_its_order
        a_job_that_prints_too_much_is_ended
        output_is_seen_while_the_job_runs
        ten_megabytes_go_in_and_come_out
        input_that_nobody_reads_holds_nobody_up
        a_guest_speaks_over_a_socket
        streams_can_be_opened_by_name
        only_pipes_and_sockets_are_handed_over
        codes_and_signals_are_told
        arguments_arrive_as_they_are
    }
    limits {
        a_job_with_too_much_memory_is_ended_alone
        a_job_with_too_many_processes_is_refused_more
        a_volume_takes_no_more_than_its_limit
        what_a_job_used_is_told
    }
    network {
        without_a_network_there_is_its_own_loopback_only
        a_listed_host_is_reached_through_the_proxy_and_no_other
    }
}
