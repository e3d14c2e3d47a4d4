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

test "a power order without an id is refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    const pair: base.Ed25519.KeyPair = try .generateDeterministic(@splat(3));
    const zero: base.Uuid = .zero;
    for ([_]base.Uuid{ .fromRandom(@splat(9)), zero }) |order_id| {
        const payload = try std.fmt.allocPrint(
            gpa,
            "{{\"schema\":1,\"edgeId\":\"{f}\",\"organizationId\":\"{f}\",\"siteId\":\"{f}\"," ++
                "\"siteName\":\"\",\"incarnation\":1,\"counter\":1,\"unknownDevices\":\"ignore\"," ++
                "\"vdisks\":[],\"devices\":[],\"powerOns\":[],\"powerOrders\":[{{\"id\":\"{f}\"," ++
                "\"deviceId\":\"{f}\",\"mac\":\"02:bf:00:00:00:01\",\"order\":\"restart\"}}]}}",
            .{ zero, zero, zero, order_id, zero },
        );
        const signed = try std.mem.concat(gpa, u8, &.{ "bootfarm-state-v1\n", payload });
        const signature = pair.sign(signed).toBytes();
        var text: [88]u8 = undefined;
        const envelope = try std.fmt.allocPrint(
            gpa,
            "{{\"payload\":{f},\"signature\":\"{s}\",\"keyId\":\"x\"}}",
            .{
                std.json.fmt(payload, .{}),
                std.base64.standard.Encoder.encode(&text, &signature),
            },
        );
        const state = desired_state.accept(
            gpa,
            envelope,
            .{ .edge_id = zero, .signing_key = pair.public_key.bytes },
        );
        if (order_id.eql(zero))
            try testing.expectError(error.StateMalformed, state)
        else
            try testing.expectEqual(1, (try state).powerOrders.len);
    }
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
