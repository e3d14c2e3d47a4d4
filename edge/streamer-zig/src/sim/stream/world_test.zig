//! A few short runs of the stream's simulation; `zig build stream-sim` runs thousands.

const std = @import("std");
const Mutant = @import("mutants.zig").Mutant;
const StreamWorld = @import("world.zig");
const testing = std.testing;

const packets = 1500;

test "under all faults every byte is right, everything finishes, and a seed repeats its run" {
    const world: *StreamWorld = try .create(testing.allocator);
    defer world.destroy(testing.allocator);
    for (1..9) |seed| {
        const result = try world.run(.{ .seed = seed, .packets = packets });
        if (result.violation) |violation| {
            std.debug.print("seed {d}: {t}: {s}\n", .{ seed, violation.check, violation.text() });
            return error.Violated;
        }
        const again = try world.run(.{ .seed = seed, .packets = packets });
        try testing.expectEqual(result.hash, again.hash);
    }
}

test "a mutant is found" {
    const world: *StreamWorld = try .create(testing.allocator);
    defer world.destroy(testing.allocator);
    for ([_]Mutant{ .fragment_at_wrong_index, .cookie_unchecked, .write_kept_in_part }) |mutant| {
        for (1..10) |seed| {
            const result = try world.run(.{ .seed = seed, .packets = packets, .mutant = mutant });
            if (result.violation != null) break;
        } else return error.NotFound;
    }
}
