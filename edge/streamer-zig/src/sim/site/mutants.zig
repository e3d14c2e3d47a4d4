//! Bugs that can be planted into a run, to see that the simulator catches them. Each is done by the simulated world to the
//! packets and answers of the real machines, where the machine's own mistake would show.

const std = @import("std");

pub const Mutant = enum {
    none,
    /// Fragments of another device's session are taken for one's own.
    accept_foreign_fragment,
    /// The edge leaves out the last fragment of every read.
    forget_last_fragment,
    /// Fragments are the right ones with the bytes of the one before.
    shift_fragment,
    /// A HELLO is believed without its cookie.
    cookie_unchecked,
    /// The edge answers a HELLO without a cookie at length.
    answer_too_long,
    /// Whoever shows the token gets a session, as often as he likes.
    token_twice,
    /// Now and then a read is answered from another version.
    stale_read,
    /// A running boot follows the policy to another version.
    version_follows_policy,
    /// A resumption begins a new boot.
    boot_on_resumption,
    /// READY counts each time it is said.
    ready_twice,
    /// Reads that are asked again are counted as new ones.
    count_repeats,
    /// A restarted edge has lost its boots.
    forget_journal,
    /// A restarted edge begins to count revisions anew.
    forget_revision,
    /// A restarted edge gives the addresses in use once more.
    forget_leases,
    /// A restarted edge has another resumption key.
    forget_resumption_key,
    /// The first READ of each boot is thrown away, also when it is repeated.
    deaf_to_reads,
    /// What a device says after its boot is over is not taken.
    deaf_to_the_running,
    /// A restarted edge has forgotten for which boots its power orders are.
    forget_orders,
    /// An order is given to whatever boot its device is in.
    order_follows_device,
    /// A HELLO with a wrong proof ends the session of the boot that it names.
    wrong_proof_ends_session,
    /// An outcome by HTTP counts for a boot whose device has another address.
    outcome_of_any_address,
    /// A device that the desired state disables, or does not list, boots its first version.
    boot_without_permission,
    /// A boot begins with a version that the desired state does not describe any more.
    begin_withdrawn_version,
    /// An edge answers a device that another edge of the site answers.
    answer_for_others,
    /// What other edges say of their boots changes nothing here.
    deaf_to_claims,
    /// A write to a durable layer is acknowledged before it is synced.
    done_before_it_is,
    /// An empty layer silently replaces one that is lost.
    lost_cache_replaced,
    /// An edge keeps writes whose owner is another edge.
    keep_writes_of_others,
    /// A boot that fails over continues with the first version of the desired state.
    failover_to_another_version,
    /// A restarted edge has forgotten which runs it has begun.
    forget_schedules,
    /// A restarted edge has lost its report log.
    forget_report_log,
    /// The control plane applies reports each time they come.
    apply_reports_again,
    /// An acknowledgement that did not come counts as one of all and the next.
    believe_lost_answers,
    /// A timer is planned in the past.
    time_backwards,

    /// Of the reports' world.
    pub fn isOfReports(mutant: Mutant) bool {
        return switch (mutant) {
            .forget_report_log, .apply_reports_again, .believe_lost_answers => true,
            else => false,
        };
    }

    /// Seeds from the first on that do not show it, so that a self-test need not run them.
    pub fn silentSeeds(mutant: Mutant) u64 {
        return switch (mutant) {
            .forget_leases => 10,
            .deaf_to_claims, .lost_cache_replaced => 20,
            .forget_orders => 22,
            .keep_writes_of_others => 37,
            .failover_to_another_version => 49,
            .deaf_to_reads => 76,
            else => 0,
        };
    }

    /// As in `--mutant`: dashes for underscores.
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
    try std.testing.expectEqualStrings("stale-read", try std.mem.print(&buffer, "{f}", .{Mutant.stale_read}));
}
