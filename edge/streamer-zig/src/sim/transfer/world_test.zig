//! Runs distributions of a difference with many seeds, and the mutants that they must find.

const std = @import("std");
const TransferWorld = @import("world.zig");
const testing = std.testing;

const Mutant = TransferWorld.Mutant;
const Options = TransferWorld.Options;
const Violation = TransferWorld.Violation;

const seeds = 300;

fn optionsOf(seed: u64) Options {
    return .{
        .seed = seed,
        .edges = @intCast(2 + seed % 4),
        .pieces = @intCast(1 + seed % 17),
        .loss = ([_]u8{ 0, 3, 30 })[seed / 4 % 3],
        .is_rough = seed / 12 % 2 == 1,
        .is_killing = seed / 24 % 2 == 1,
        .has_origin = seed / 48 % 2 == 1,
        // The first edge stays honest.
        .liars = @intCast(@min(seed / 96 % 3, seed % 4)),
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
    try testing.expect(kills > 100 and cuts > 100 and lies > 100);
}

test "where nothing is lost each byte enters the site once, also at 30 % loss" {
    for ([_]u8{ 0, 30 }) |loss| for (0..20) |seed| {
        const options: Options = .{ .seed = seed, .edges = 5, .loss = loss };
        const result = try expectSound(options);
        try testing.expectEqual(options.pieces, result.line_pieces);
    };
}

fn find(mutant: Mutant) ?Violation {
    for (0..2 * seeds) |seed| {
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
    for (0..20) |seed| {
        const options = optionsOf(seed + 70);
        try testing.expectEqual(TransferWorld.run(options), TransferWorld.run(options));
    }
}
