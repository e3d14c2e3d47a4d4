//! What the frame of the simulator guarantees about itself, over whole runs.

const std = @import("std");
const World = @import("world.zig");
const testing = std.testing;

test "the same seed gives the same run, another seed another one" {
    const one = try World.run(testing.allocator, .{ .seed = 1 });
    const again = try World.run(testing.allocator, .{ .seed = 1 });
    const other = try World.run(testing.allocator, .{ .seed = 2 });
    try testing.expectEqual(null, one.violation);
    try testing.expectEqual(one.hash, again.hash);
    try testing.expectEqual(one.events, again.events);
    try testing.expect(one.hash != other.hash);
}

test "the canary is a violation in a run that is well" {
    const result = try World.run(testing.allocator, .{ .seed = 1, .is_canary = true });
    try testing.expectEqual(.canary, result.violation.?.check);
}

test "wrong bytes are seen" {
    const result = try World.run(testing.allocator, .{ .seed = 3, .mutant = .shift_fragment });
    try testing.expectEqual(.bytes_equal_version, result.violation.?.check);
}
