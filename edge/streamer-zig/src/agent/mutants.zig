//! Mistakes that the simulation can put into the agent, to see that its checks find them. The
//! product is compiled without them: `has` is false there.

/// True only in the programs of the simulation.
pub const is_compiled_in: bool = @import("agent_options").has_mutants;

pub const Mutant = enum {
    /// An edge that lacks a device's version answers it as any other.
    answer_without_version,
    /// A token opens a session as often as somebody shows it.
    token_twice,
    /// A device that has started again gets the boot whose transaction id it repeats, and with it a
    /// token that is used.
    transaction_outlives_session,
    /// A boot in progress follows the policy to another version.
    version_follows_policy,
    /// A resumption begins a new boot.
    boot_on_resumption,
    /// The first READ of each session is dropped, also when it is retransmitted.
    deaf_to_reads,
    /// A retransmitted READ is counted as a new one.
    count_repeats,
    /// READY counts each time it arrives.
    ready_twice,
    /// What a device reports after its boot is over is dropped.
    deaf_to_the_running,
    /// An order is given to whatever boot its device is in.
    order_follows_device,
    /// The first HELLO of a device opens its session, also if it is a copy in an older version.
    first_version_stays,
    /// A HELLO with a wrong proof ends the session of the boot that it names.
    wrong_proof_ends_session,
    /// An outcome by HTTP counts for a boot whose device has another address.
    outcome_of_any_address,
    /// A boot script is given to whoever asks for it.
    script_for_strangers,
    /// PROBE is not answered while a disk keeps the edge waiting.
    probe_behind_disk,
    /// A retransmitted WELCOME resets the counter of the session's packets.
    counter_restarts,
    /// The WELCOME that shows the largest packet size is not sent.
    large_welcome_left_out,
    /// A boot fails over although its write cache is at another edge.
    ticket_of_writes_taken,
    /// The layer of another boot is used.
    another_device_read,
    /// A device with a durable layer is welcomed before its boot is on the disk.
    welcome_before_sync,
    /// A write is acknowledged before a thread has carried it out.
    done_before_carried_out,
    /// A write to a durable layer is acknowledged before it is synced.
    done_before_it_is,
    /// Only the first sector of a write is kept.
    write_kept_in_part,
    /// A discard is acknowledged and not carried out.
    discard_does_nothing,
    /// A discard that is carried out in parts is acknowledged after the first one.
    discard_ends_early,
    /// Writes are acknowledged after a sync that does nothing.
    sync_left_out,
    /// An empty layer silently replaces one that is lost.
    lost_cache_replaced,
    /// The next program in the process gets no write caches.
    caches_left_behind,
    /// A device that the desired state disables, or does not list, boots its first version.
    boot_without_permission,
    /// A boot begins with a version that the desired state does not describe any more.
    begin_withdrawn_version,
    /// An edge answers a device that another edge of the site answers.
    answer_for_others,
    /// What other edges say of their boots changes nothing here.
    deaf_to_claims,
    /// An edge keeps writes whose owner is another edge.
    keep_writes_of_others,
    /// A boot that fails over continues with the first version of the desired state.
    failover_to_another_version,
    /// Boots teach what their devices have written at the edge.
    learn_from_kept_writes,
    /// A device is handed the boot profile of any version.
    profile_of_another_version,
    /// The recording of a boot that fails is kept for good.
    recordings_never_freed,
    /// A request that anybody can send ends the boot that its device runs in.
    hint_ends_boots,
    /// Each hint of a running device begins one more candidate.
    hints_pile_up,
    /// A proved candidate ends a running boot without a question.
    ask_nobody,
    /// A candidate beside a running device is reported.
    report_hints,
    /// Another edge's claim ends a running boot, proved or not.
    believe_claims,
    /// A device that nobody has registered takes a slot of those that are.
    strangers_unbounded,
    /// An address that is proven to be a device's does not get into the index of addresses.
    address_unindexed,
    /// Whoever proves a boot's token opens what belongs to its device.
    keys_unjudged,
    /// A wrong signature counts as a right one.
    signature_unverified,
    /// A device's later boots know nothing of the key that was accepted.
    key_forgotten,
    /// The first key is accepted where a person has to approve it.
    approval_left_out,
    /// A device that leaves out the signature gets what belongs to the device whose key is known.
    missing_key_opens,
    /// A key counts before the device's other boot was asked whether it still runs.
    key_before_proof,
    /// A run of a schedule switches devices on before it is on the disk that it began.
    start_before_kept,
    /// A boot fails when its device asks while a thread still opens its version.
    refuse_while_opening,
    /// Whoever solicits a router is told that there is none.
    advertise_to_strangers,
};

/// Per thread.
pub threadlocal var active: ?Mutant = null;

pub inline fn has(comptime mutant: Mutant) bool {
    if (!is_compiled_in) return false;
    return active == mutant;
}
