//! Looks for each mutant in runs with the faults without which it shows nothing.

const std = @import("std");
const Mutant = @import("mutants.zig").Mutant;
const StreamScenario = @import("scenario.zig");
const StreamWorld = @import("world.zig");

/// Runs in which a mutant has to be found.
const runs_max = 400;
/// Short runs: most mutants are found at once.
const packets_per_run = 5_000;

/// Plants each mutant; a simulation that does not find one is blind.
pub fn findAll(gpa: std.mem.Allocator, seed: u64) !bool {
    const world: *StreamWorld = try .create(gpa);
    defer world.destroy(gpa);
    var missed: u32 = 0;
    for (std.enums.values(Mutant)) |mutant| {
        if (mutant != .none and !try find(world, seed, mutant)) missed += 1;
    }
    const count = std.enums.values(Mutant).len - 1;
    std.debug.print("stream: {d} of {d} mutants found\n", .{ count - missed, count });
    return missed == 0;
}

fn find(world: *StreamWorld, seed: u64, mutant: Mutant) !bool {
    var packets: u64 = 0;
    for (0..runs_max) |run| {
        const result = try world.run(.{
            .seed = seed +% run,
            .packets = packets_per_run,
            .limits = limitsFor(mutant),
            .mutant = mutant,
        });
        packets += result.packets;
        const violation = result.violation orelse continue;
        std.debug.print("mutant {f}: found after {d} packets by {t}: {s}\n", .{
            mutant, packets, violation.check, violation.text(),
        });
        return true;
    }
    std.debug.print("mutant {f}: NOT FOUND in {d} packets\n", .{ mutant, packets });
    return false;
}

fn limitsFor(mutant: Mutant) StreamScenario.Limits {
    return switch (mutant) {
        // Elsewhere a device that waits longer may have another reason.
        .never_leaves,
        .silent_edge_never_passed_over,
        .silent_edge_keeps_its_turn,
        .refusal_unheard,
        => .{ .is_of_edges = true },
        .bound_asks_others,
        .ready_not_said_again,
        .report_not_said_again,
        .keys_go_along,
        .ticket_of_writes_taken,
        => .{ .with = .init(.{ .several_edges = true, .crashes = true }) },
        .size_never_lowered => .{ .with = .init(.{ .narrow_paths = true }) },
        // A device that also reads learns of a narrow path without writes.
        .narrow_path_unfound => .{
            .with = .init(.{ .narrow_paths = true, .path_changes = true }),
            .is_serial = true,
        },
        .probe_behind_disk => .{ .with = .init(.{ .slow_disk = true }) },
        .timeout_never_doubles => .{
            .with = .init(.{ .cuts = true }),
            .without = .init(.{ .several_edges = true }),
        },
        .lost_order_unproven => .{ .with = .init(.{ .crashes = true, .lost_keys = true }) },
        .token_twice => .{ .with = .init(.{ .thieves = true }) },
        // Without a session that has been resumed there is nothing to replay.
        .proof_without_cookie,
        .recorded_hello_forgotten,
        => .{ .with = .init(.{ .thieves = true, .addresses = true, .cuts = true }) },
        .welcome_before_sync,
        .done_before_it_is,
        .sync_left_out,
        .lost_cache_replaced,
        => .{ .with = .init(.{ .crashes = true }) },
        else => .{},
    };
}
