//! Faults that a run can plant, to see that the simulator finds them. The simulated world changes
//! packets and answers of the product where a fault of the product would show.

const std = @import("std");
const Attack = @import("attack.zig").Attack;

pub const Mutant = enum {
    none,
    /// A device takes fragments of another device's session.
    accept_foreign_fragment,
    /// The edge leaves out the last fragment of every read.
    forget_last_fragment,
    /// A fragment has the bytes of the one before it.
    shift_fragment,
    /// The edge believes a HELLO without a cookie.
    cookie_unchecked,
    /// The edge answers a HELLO without a cookie with more bytes than it has.
    answer_too_long,
    /// A token opens any number of sessions.
    token_twice,
    /// A device that has started again gets the boot whose transaction id it repeats.
    transaction_outlives_session,
    /// One read in a hundred is answered from another version.
    stale_read,
    /// A running boot follows the policy to another version.
    version_follows_policy,
    /// A resumption begins a new boot.
    boot_on_resumption,
    /// Each READY counts, retransmissions included.
    ready_twice,
    /// Retransmitted READs are counted as new ones.
    count_repeats,
    /// A restarted edge has lost its boots.
    forget_journal,
    /// A restarted edge counts revisions from 0 again.
    forget_revision,
    /// A restarted edge leases addresses that are in use.
    forget_leases,
    /// A restarted edge has another resumption key.
    forget_resumption_key,
    /// The edge drops the first READ of each boot, retransmissions included.
    deaf_to_reads,
    /// The edge ignores the reports of a device whose boot is over.
    deaf_to_the_running,
    /// A restarted edge has forgotten for which boots its power orders are.
    forget_orders,
    /// An order is given to any boot of its device.
    order_follows_device,
    /// A copy of a device's HELLO in version 2 keeps the device from its session in version 3.
    first_version_stays,
    /// A HELLO with a wrong proof ends the session of its boot.
    wrong_proof_ends_session,
    /// An outcome by HTTP counts for a boot whose device has another address.
    outcome_of_any_address,
    /// A boot script is given to whoever asks for it.
    script_for_strangers,
    /// A device that the desired state disables, or does not list, boots its first version.
    boot_without_permission,
    /// A boot begins with a version that the desired state does not describe any more.
    begin_withdrawn_version,
    /// An edge answers a device that another edge of the site answers.
    answer_for_others,
    /// An edge that lacks a device's version answers it as any other.
    answer_without_version,
    /// The edge ignores what other edges claim.
    deaf_to_claims,
    /// A write to a durable layer is acknowledged before it is synced.
    done_before_it_is,
    /// The next program in the process gets no write caches.
    caches_left_behind,
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
    /// A boot fails when its device asks while a thread still opens its version.
    refuse_while_opening,
    /// Whoever solicits a router is told that there is none.
    advertise_to_strangers,
    /// A restarted edge has forgotten which runs of schedules it has begun.
    forget_schedules,
    /// A run of a schedule switches devices on before it is on the disk that it began.
    start_before_kept,
    /// A restarted edge has lost its report log.
    forget_report_log,
    /// The control plane applies each copy of a report.
    apply_reports_again,
    /// The edge takes a lost answer for an acknowledgement of the batch and of the next report.
    believe_lost_answers,
    /// A timer is planned in the past.
    time_backwards,

    /// Returns whether only the month without a control plane shows it.
    pub fn isOfReports(mutant: Mutant) bool {
        return switch (mutant) {
            .forget_report_log, .apply_reports_again, .believe_lost_answers => true,
            else => false,
        };
    }

    /// Returns whether only the runs of schedules show it.
    pub fn isOfSchedules(mutant: Mutant) bool {
        return mutant == .forget_schedules or mutant == .start_before_kept;
    }

    /// Counts the first seeds that do not show it, so that a self-test skips them.
    pub fn silentSeeds(mutant: Mutant) u64 {
        return switch (mutant) {
            .keys_unjudged, .signature_unverified, .key_forgotten, .approval_left_out => 2,
            .missing_key_opens, .key_before_proof => 2,
            .advertise_to_strangers => 7,
            .forget_leases => 10,
            .deaf_to_claims => 20,
            .forget_orders => 22,
            .keep_writes_of_others => 37,
            .deaf_to_reads => 76,
            .failover_to_another_version => 115,
            .wrong_proof_ends_session => 144,
            .first_version_stays => 288,
            else => 0,
        };
    }

    /// Returns the one attack that shows it, where mixed ones seldom get there.
    pub fn attack(mutant: Mutant) ?Attack {
        return switch (mutant) {
            .signature_unverified, .missing_key_opens => .impersonate,
            .key_before_proof => .steal_candidate,
            else => null,
        };
    }

    /// Returns how many devices a site needs to show it: every third one has no key.
    pub fn devices(mutant: Mutant) ?u8 {
        return if (mutant == .key_before_proof) 9 else null;
    }

    /// Parses the name of `--mutant`, which has dashes for underscores.
    pub fn parse(text: []const u8) ?Mutant {
        var buffer: [64]u8 = undefined;
        if (text.len > buffer.len) return null;
        const name = buffer[0..text.len];
        @memcpy(name, text);
        std.mem.replaceScalar(u8, name, '-', '_');
        return std.meta.stringToEnum(Mutant, name);
    }

    pub fn format(mutant: Mutant, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        for (@tagName(mutant)) |byte| try writer.writeByte(if (byte == '_') '-' else byte);
    }
};

test "a mutant has one spelling on the command line" {
    try std.testing.expectEqual(.token_twice, Mutant.parse("token-twice").?);
    try std.testing.expectEqual(null, Mutant.parse("no-such-bug"));
    var buffer: [64]u8 = undefined;
    const text = try std.mem.print(&buffer, "{f}", .{Mutant.stale_read});
    try std.testing.expectEqualStrings("stale-read", text);
}
