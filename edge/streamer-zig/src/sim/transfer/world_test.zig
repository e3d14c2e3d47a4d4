//! Runs distributions of a difference with many seeds, and the mutants that they must find.

const std = @import("std");
const TransferWorld = @import("world.zig");
const testing = std.testing;

const Mutant = TransferWorld.Mutant;
const Options = TransferWorld.Options;
const Violation = TransferWorld.Violation;

/// All combinations of what may go wrong.
const seeds = 72;

fn optionsOf(seed: u64) Options {
    return .{
        .seed = seed,
        .edges = @intCast(2 + seed % 4),
        .pieces = @intCast(1 + seed % 17),
        .loss = ([_]u8{ 0, 3, 30 })[seed % 3],
        .is_rough = seed / 3 % 2 == 1,
        .is_killing = seed / 6 % 2 == 1,
        .has_origin = seed / 12 % 2 == 1,
        // The first edge stays honest.
        .liars = @intCast(@min(seed / 24 % 3, seed % 4)),
    };
}

fn expectSound(options: Options) !TransferWorld.Result {
    const result = TransferWorld.run(options);
    if (result.violation) |violation| {
        std.debug.print("{any}: {t}\n", .{ options, violation });
        return error.Violation;
    }
    return result;
}

test "every honest edge gets every byte right, whatever the network and the others do" {
    var kills: u64 = 0;
    var cuts: u64 = 0;
    var lies: u64 = 0;
    for (0..seeds) |seed| {
        const result = try expectSound(optionsOf(seed));
        kills += result.kills;
        cuts += result.cuts;
        lies += result.lies;
    }
    // They have been there.
    try testing.expect(kills > 20 and cuts > 20 and lies > 20);
}

test "where nothing is lost each byte enters the site once, also at 30 % loss" {
    for ([_]u8{ 0, 30 }) |loss| for (0..20) |seed| {
        const options: Options = .{ .seed = seed, .edges = 5, .loss = loss };
        const result = try expectSound(options);
        try testing.expectEqual(options.pieces, result.line_pieces);
    };
}

fn find(mutant: Mutant) ?Violation {
    for (0..8 * seeds) |seed| {
        var options = optionsOf(seed);
        options.mutant = mutant;
        if (TransferWorld.run(options).violation) |violation| return violation;
    }
    return null;
}

test "mistakes around the plan are found" {
    for (std.enums.values(Mutant)) |mutant| {
        if (find(mutant) != null) continue;
        std.debug.print("{t} survived\n", .{mutant});
        return error.Survived;
    }
}

test "the same seed gives the same run" {
    for (0..6) |seed| {
        const options = optionsOf(seed + 66);
        try testing.expectEqual(TransferWorld.run(options), TransferWorld.run(options));
    }
}
