//! The native driver keeps what every runtime promises: for root, and for somebody who is not.
//!
//! Each test runs its part of the contract as whoever runs the tests, and once more without any right if
//! that is root.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start themselves as another user and stop at the first surprise"
)]

mod guests;
mod native;
mod template;

use fluffy_testkit::runtime_contract as contract;

mod confinement {
    use super::{contract, native::holds};

    #[test]
    fn p1_changes_of_an_overlay_are_in_its_volume_and_nowhere_else() {
        holds(
            "confinement::p1_changes_of_an_overlay_are_in_its_volume_and_nowhere_else",
            contract::p1_changes_of_an_overlay_are_in_its_volume_and_nowhere_else,
        );
    }

    #[test]
    fn p1_of_a_workspace_in_parts_nothing_else_is_seen_or_changed() {
        holds(
            "confinement::p1_of_a_workspace_in_parts_nothing_else_is_seen_or_changed",
            contract::p1_of_a_workspace_in_parts_nothing_else_is_seen_or_changed,
        );
    }

    #[test]
    fn p1_a_read_only_workspace_is_not_changed_and_output_is_in_the_volume() {
        holds(
            "confinement::p1_a_read_only_workspace_is_not_changed_and_output_is_in_the_volume",
            contract::p1_a_read_only_workspace_is_not_changed_and_output_is_in_the_volume,
        );
    }

    #[test]
    fn p1_nothing_but_the_volume_can_be_written_to() {
        holds(
            "confinement::p1_nothing_but_the_volume_can_be_written_to",
            contract::p1_nothing_but_the_volume_can_be_written_to,
        );
    }

    #[test]
    fn p1_links_in_what_is_shown_lead_nowhere_outside() {
        holds(
            "confinement::p1_links_in_what_is_shown_lead_nowhere_outside",
            contract::p1_links_in_what_is_shown_lead_nowhere_outside,
        );
    }

    #[test]
    fn p1_layers_hide_each_other_and_stay_as_they_are() {
        holds(
            "confinement::p1_layers_hide_each_other_and_stay_as_they_are",
            contract::p1_layers_hide_each_other_and_stay_as_they_are,
        );
    }

    #[test]
    fn p2_only_what_is_shown_is_seen() {
        holds(
            "confinement::p2_only_what_is_shown_is_seen",
            contract::p2_only_what_is_shown_is_seen,
        );
    }

    #[test]
    fn p2_a_home_is_empty_private_and_writable() {
        holds(
            "confinement::p2_a_home_is_empty_private_and_writable",
            contract::p2_a_home_is_empty_private_and_writable,
        );
    }

    #[test]
    fn p2_the_environment_is_the_jobs_own() {
        holds(
            "confinement::p2_the_environment_is_the_jobs_own",
            contract::p2_the_environment_is_the_jobs_own,
        );
    }

    #[test]
    fn p2_only_its_own_processes_are_seen() {
        holds(
            "confinement::p2_only_its_own_processes_are_seen",
            contract::p2_only_its_own_processes_are_seen,
        );
    }

    #[test]
    fn p5_a_job_whose_surroundings_are_lacking_does_not_run() {
        holds(
            "confinement::p5_a_job_whose_surroundings_are_lacking_does_not_run",
            contract::p5_a_job_whose_surroundings_are_lacking_does_not_run,
        );
    }

    #[test]
    fn p5_a_program_that_cannot_be_run_is_named() {
        holds(
            "confinement::p5_a_program_that_cannot_be_run_is_named",
            contract::p5_a_program_that_cannot_be_run_is_named,
        );
    }

    #[test]
    fn p5_a_volume_serves_once() {
        holds("confinement::p5_a_volume_serves_once", contract::p5_a_volume_serves_once);
    }

    #[test]
    fn lesson_l21_no_caller_gets_more_than_the_template_gives() {
        holds(
            "confinement::lesson_l21_no_caller_gets_more_than_the_template_gives",
            contract::lesson_l21_no_caller_gets_more_than_the_template_gives,
        );
    }
}

mod lifetime {
    use super::{contract, native::holds};

    #[test]
    fn p3_a_job_ends_by_its_deadline_whatever_it_does() {
        holds(
            "lifetime::p3_a_job_ends_by_its_deadline_whatever_it_does",
            contract::p3_a_job_ends_by_its_deadline_whatever_it_does,
        );
    }

    #[test]
    fn p3_a_job_that_steals_its_own_output_ends_by_its_deadline() {
        holds(
            "lifetime::p3_a_job_that_steals_its_own_output_ends_by_its_deadline",
            contract::p3_a_job_that_steals_its_own_output_ends_by_its_deadline,
        );
    }

    #[test]
    fn p4_nothing_a_job_started_outlives_it() {
        holds(
            "lifetime::p4_nothing_a_job_started_outlives_it",
            contract::p4_nothing_a_job_started_outlives_it,
        );
    }

    #[test]
    fn p4_nothing_outlives_a_sandbox_that_is_taken_away() {
        holds(
            "lifetime::p4_nothing_outlives_a_sandbox_that_is_taken_away",
            contract::p4_nothing_outlives_a_sandbox_that_is_taken_away,
        );
    }

    #[test]
    fn p6_a_sandbox_can_be_taken_away_in_every_state_and_again() {
        holds(
            "lifetime::p6_a_sandbox_can_be_taken_away_in_every_state_and_again",
            contract::p6_a_sandbox_can_be_taken_away_in_every_state_and_again,
        );
    }

    #[test]
    fn p6_a_sandbox_that_is_taken_away_while_it_starts_does_not_run_on() {
        holds(
            "lifetime::p6_a_sandbox_that_is_taken_away_while_it_starts_does_not_run_on",
            contract::p6_a_sandbox_that_is_taken_away_while_it_starts_does_not_run_on,
        );
    }

    #[test]
    fn p6_a_volume_outlives_its_sandbox() {
        holds(
            "lifetime::p6_a_volume_outlives_its_sandbox",
            contract::p6_a_volume_outlives_its_sandbox,
        );
    }

    #[test]
    fn a_job_that_is_stopped_may_end_by_itself() {
        holds(
            "lifetime::a_job_that_is_stopped_may_end_by_itself",
            contract::a_job_that_is_stopped_may_end_by_itself,
        );
    }

    #[test]
    fn a_job_that_does_not_obey_is_killed_after_the_grace() {
        holds(
            "lifetime::a_job_that_does_not_obey_is_killed_after_the_grace",
            contract::a_job_that_does_not_obey_is_killed_after_the_grace,
        );
    }

    #[test]
    fn a_paused_job_makes_no_progress() {
        holds("lifetime::a_paused_job_makes_no_progress", contract::a_paused_job_makes_no_progress);
    }

    #[test]
    fn sbx_8_a_job_is_told_of_a_pause_and_of_its_end() {
        holds(
            "lifetime::sbx_8_a_job_is_told_of_a_pause_and_of_its_end",
            contract::sbx_8_a_job_is_told_of_a_pause_and_of_its_end,
        );
    }

    #[test]
    fn sbx_8_nobody_puts_a_pause_off_for_longer_than_its_grace() {
        holds(
            "lifetime::sbx_8_nobody_puts_a_pause_off_for_longer_than_its_grace",
            contract::sbx_8_nobody_puts_a_pause_off_for_longer_than_its_grace,
        );
    }

    #[test]
    fn a_pause_does_not_count_towards_the_deadline() {
        holds(
            "lifetime::a_pause_does_not_count_towards_the_deadline",
            contract::a_pause_does_not_count_towards_the_deadline,
        );
    }
}

mod states {
    use super::{contract, native::holds};

    #[test]
    fn a_sandbox_goes_through_its_states_in_order() {
        holds(
            "states::a_sandbox_goes_through_its_states_in_order",
            contract::a_sandbox_goes_through_its_states_in_order,
        );
    }

    #[test]
    fn what_a_state_does_not_allow_is_refused() {
        holds(
            "states::what_a_state_does_not_allow_is_refused",
            contract::what_a_state_does_not_allow_is_refused,
        );
    }

    #[test]
    fn a_sandbox_whose_job_could_not_run_has_failed() {
        holds(
            "states::a_sandbox_whose_job_could_not_run_has_failed",
            contract::a_sandbox_whose_job_could_not_run_has_failed,
        );
    }

    #[test]
    fn a_runtime_that_is_ready_runs_jobs_at_once() {
        holds(
            "states::a_runtime_that_is_ready_runs_jobs_at_once",
            contract::a_runtime_that_is_ready_runs_jobs_at_once,
        );
    }

    #[test]
    fn every_sandbox_has_a_name_of_its_own() {
        holds(
            "states::every_sandbox_has_a_name_of_its_own",
            contract::every_sandbox_has_a_name_of_its_own,
        );
    }

    #[test]
    fn several_may_wait_for_one_end() {
        holds("states::several_may_wait_for_one_end", contract::several_may_wait_for_one_end);
    }
}

mod streams {
    use super::{contract, native::holds};

    #[test]
    fn both_streams_are_captured_each_in_its_order() {
        holds(
            "streams::both_streams_are_captured_each_in_its_order",
            contract::both_streams_are_captured_each_in_its_order,
        );
    }

    #[test]
    fn a_job_that_prints_too_much_is_ended() {
        holds(
            "streams::a_job_that_prints_too_much_is_ended",
            contract::a_job_that_prints_too_much_is_ended,
        );
    }

    #[test]
    fn output_is_seen_while_the_job_runs() {
        holds(
            "streams::output_is_seen_while_the_job_runs",
            contract::output_is_seen_while_the_job_runs,
        );
    }

    #[test]
    fn ten_megabytes_go_in_and_come_out() {
        holds(
            "streams::ten_megabytes_go_in_and_come_out",
            contract::ten_megabytes_go_in_and_come_out,
        );
    }

    #[test]
    fn input_that_nobody_reads_holds_nobody_up() {
        holds(
            "streams::input_that_nobody_reads_holds_nobody_up",
            contract::input_that_nobody_reads_holds_nobody_up,
        );
    }

    #[test]
    fn a_guest_speaks_over_a_socket() {
        holds("streams::a_guest_speaks_over_a_socket", contract::a_guest_speaks_over_a_socket);
    }

    #[test]
    fn streams_can_be_opened_by_name() {
        holds("streams::streams_can_be_opened_by_name", contract::streams_can_be_opened_by_name);
    }

    #[test]
    fn only_pipes_and_sockets_are_handed_over() {
        holds(
            "streams::only_pipes_and_sockets_are_handed_over",
            contract::only_pipes_and_sockets_are_handed_over,
        );
    }

    #[test]
    fn codes_and_signals_are_told() {
        holds("streams::codes_and_signals_are_told", contract::codes_and_signals_are_told);
    }

    #[test]
    fn arguments_arrive_as_they_are() {
        holds("streams::arguments_arrive_as_they_are", contract::arguments_arrive_as_they_are);
    }
}

mod limits {
    use super::{contract, native::holds};

    #[test]
    fn a_job_with_too_much_memory_is_ended_alone() {
        holds(
            "limits::a_job_with_too_much_memory_is_ended_alone",
            contract::a_job_with_too_much_memory_is_ended_alone,
        );
    }

    #[test]
    fn a_job_with_too_many_processes_is_refused_more() {
        holds(
            "limits::a_job_with_too_many_processes_is_refused_more",
            contract::a_job_with_too_many_processes_is_refused_more,
        );
    }

    #[test]
    fn a_volume_takes_no_more_than_its_limit() {
        holds(
            "limits::a_volume_takes_no_more_than_its_limit",
            contract::a_volume_takes_no_more_than_its_limit,
        );
    }

    #[test]
    fn what_a_job_used_is_told() {
        holds("limits::what_a_job_used_is_told", contract::what_a_job_used_is_told);
    }
}

mod network {
    use super::{contract, native::holds};

    #[test]
    fn without_a_network_there_is_its_own_loopback_only() {
        holds(
            "network::without_a_network_there_is_its_own_loopback_only",
            contract::without_a_network_there_is_its_own_loopback_only,
        );
    }

    #[test]
    fn a_listed_host_is_reached_through_the_proxy_and_no_other() {
        holds(
            "network::a_listed_host_is_reached_through_the_proxy_and_no_other",
            contract::a_listed_host_is_reached_through_the_proxy_and_no_other,
        );
    }
}
