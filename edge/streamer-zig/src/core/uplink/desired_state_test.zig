//! Tests of desired_state.zig with hostile envelopes; the well-formed ones are in message_test.zig.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");

const testing = std.testing;

const expected: desired_state.TrustAnchor = .{ .edge_id = .zero, .signing_key = @splat(7) };

fn accept(text: []const u8) desired_state.Refusal!desired_state.DesiredState {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    return desired_state.accept(arena.allocator(), text, expected);
}

test "text that is no envelope is refused" {
    const signature = @as([86]u8, @splat('A')) ++ "==".*;
    const unsigned = "{\"payload\":\"{}\",\"signature\":\"" ++ signature ++ "\",\"keyId\":\"x\"}";
    for ([_][]const u8{
        "",
        "x",
        "[]",
        "{}",
        "null",
        "{\"payload\":1,\"signature\":\"\",\"keyId\":\"\"}",
        "{\"payload\":\"\"",
    }) |text|
        try testing.expectError(error.EnvelopeMalformed, accept(text));
    try testing.expectError(
        error.EnvelopeMalformed,
        accept("{\"payload\":\"{}\",\"signature\":\"AAAA\",\"keyId\":\"x\"}"),
    );
    try testing.expectError(error.SignatureInvalid, accept(unsigned));
    const deep: [100_000]u8 = @splat('[');
    try testing.expectError(error.EnvelopeMalformed, accept(&deep));
}

test "random text never crashes the parser" {
    var prng: base.Prng = .init(5);
    var text: [200]u8 = undefined;
    for (0..2000) |_| {
        const size = prng.below(text.len);
        for (text[0..size]) |*byte|
            byte.* = prng.pick(u8, "{}[]\",:payloadsignaturekeyId\\u0001e-9");
        try testing.expect(std.meta.isError(accept(text[0..size])));
    }
}

test "a schedule is near when its next instant is" {
    const schedule: desired_state.Schedule = .{
        .id = .zero,
        .action = "power_on",
        .power = "wake_on_lan",
        .ratePerMinute = 1,
        .devices = &.{},
        .instants = &.{ 1_000, 200_000 },
    };
    try testing.expect(schedule.isNear(0, 1_000));
    try testing.expect(!schedule.isNear(1_000, 198_999));
    try testing.expect(schedule.isNear(1_000, 199_000));
    try testing.expect(!schedule.isNear(200_000, 1 << 40));
}
