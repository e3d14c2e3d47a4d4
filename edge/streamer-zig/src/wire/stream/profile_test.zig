//! Tests of profile.zig with the golden documents of
//! packages/proto/vectors/stream-profiles-v2.json, which the TypeScript tests read too.

const std = @import("std");
const profile = @import("profile.zig");
const testing = std.testing;

/// `units`: index and blocks of each.
const Vector = struct {
    name: []const u8,
    hex: []const u8,
    units: ?[]const [2]u64 = null,
    refused: bool = false,
};

fn check(vector: *const Vector) !void {
    var buffer: [1024]u8 = undefined;
    const golden = try std.fmt.hexToBytes(&buffer, vector.hex);
    var document: [1024]u8 = undefined;
    @memcpy(document[0..golden.len], golden);
    if (vector.refused) {
        if (profile.openDocument(document[0..golden.len])) |_|
            return error.TestUnexpectedResult
        else |_|
            return;
    }
    const units = try profile.openDocument(document[0..golden.len]);
    try testing.expectEqual(vector.units.?.len, units.count());
    var written: [1024]u8 = @splat(0);
    for (vector.units.?, 0..) |expected, index| {
        const unit: profile.Unit =
            .{ .index = @intCast(expected[0]), .blocks = @intCast(expected[1]) };
        try testing.expectEqual(unit, units.at(@intCast(index)));
        unit.encode(
            written[profile.head_size + index * profile.entry_size ..][0..profile.entry_size],
        );
    }
    try testing.expectEqual(golden.len, profile.documentSize(units.count()));
    profile.seal(written[0..golden.len], units.count());
    try testing.expectEqualSlices(u8, golden, written[0..golden.len]);
}

test "documents match the golden ones, and invalid ones are refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try std.json.parseFromSliceLeaky(
        []Vector,
        arena.allocator(),
        @embedFile("stream_profiles_json"),
        .{},
    );
    try testing.expectEqual(10, vectors.len);
    for (vectors) |*vector| check(vector) catch |err| {
        std.debug.print("vector: {s}\n", .{vector.name});
        return err;
    };
}
