//! What a boot's device has measured of its network (STREAM.md, NETWORK), with what its edge knows
//! beside it: which packets of the device arrived, and which numbers no packet ever had. A device
//! that lies changes the figures of its own boot. The journal keeps the packet itself.

const std = @import("std");
const stream = @import("wire").stream;
const assert = std.debug.assert;

pub const Network = @This();

pub const Passed = @import("../stream/server/step.zig").Passed;

pub const Loss = struct { expected: u64, lost: u64 };

said: stream.Network,
session_id: u64,
/// Of earlier sessions, and of the newest one when nothing was in flight last.
before: Passed = .{},
passed: Passed = .{},

pub fn init(session_id: u64, said: *const stream.Network, passed: Passed) Network {
    var network: Network = .{ .said = said.*, .session_id = session_id };
    network.count(passed);
    return network;
}

/// Returns whether anything is new.
pub fn take(
    network: *Network,
    session_id: u64,
    said: *const stream.Network,
    passed: Passed,
) bool {
    // They are sent more than once, and again by a device whose program was restarted.
    if (network.said.is_final) return false;
    const before = network.*;
    if (network.session_id != session_id) {
        network.session_id = session_id;
        network.before.sent +|= network.passed.sent;
        network.before.arrived +|= network.passed.arrived;
        network.before.skipped +|= network.passed.skipped;
        network.passed = .{};
    }
    network.said = said.*;
    network.count(passed);
    return !std.meta.eql(before, network.*);
}

/// While READs are in flight, some may wait for a thread of the edge: they are not lost.
fn count(network: *Network, passed: Passed) void {
    assert(passed.arrived <= passed.sent);
    if (network.said.is_settled)
        network.passed = passed
    else
        network.passed.skipped = passed.skipped;
}

/// Packets from the edge to the device.
pub fn toDevice(network: *const Network) Loss {
    const skipped = network.before.skipped +| network.passed.skipped;
    const expected = @as(u64, network.said.expected) -| skipped;
    const lost = @as(u64, network.said.lost) -| skipped;
    assert(lost <= expected);
    return .{ .expected = expected, .lost = lost };
}

/// Packets from the device to the edge.
pub fn fromDevice(network: *const Network) Loss {
    const sent = network.before.sent +| network.passed.sent;
    return .{
        .expected = sent,
        .lost = sent -| (network.before.arrived +| network.passed.arrived),
    };
}

const packet_size = 104;

pub fn jsonStringify(network: Network, json: anytype) !void {
    var buffer: [packet_size]u8 = undefined;
    const packet = stream.emit(.{
        .version = .v3,
        .session_id = 1,
        .body = .{ .network = network.said },
    }, &buffer);
    assert(packet.len == packet_size);
    try json.beginArray();
    try json.print("\"{x}\"", .{packet});
    try json.write(network.session_id);
    try json.write(network.before);
    try json.write(network.passed);
    try json.endArray();
}

pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !Network {
    const Kept = struct { []const u8, u64, Passed, Passed };
    const kept = try std.json.innerParse(Kept, allocator, source, options);
    var buffer: [packet_size]u8 = undefined;
    const bytes = std.fmt.hexToBytes(&buffer, kept[0]) catch return error.InvalidCharacter;
    const packet = stream.parse(bytes) catch return error.UnexpectedToken;
    if (packet.body != .network) return error.UnexpectedToken;
    for ([_]Passed{ kept[2], kept[3] }) |passed|
        if (passed.arrived > passed.sent) return error.InvalidNumber;
    return .{
        .said = packet.body.network,
        .session_id = kept[1],
        .before = kept[2],
        .passed = kept[3],
    };
}

const testing = std.testing;

test "sessions add up, and a session counts by its newest settled figures" {
    var said: stream.Network = .{ .expected = 100, .lost = 7, .is_settled = true };
    var network: Network = .init(5, &said, .{ .sent = 50, .arrived = 48, .skipped = 3 });
    try testing.expectEqual(Loss{ .expected = 97, .lost = 4 }, network.toDevice());
    try testing.expectEqual(Loss{ .expected = 50, .lost = 2 }, network.fromDevice());
    try testing.expect(!network.take(5, &said, .{ .sent = 50, .arrived = 48, .skipped = 3 }));
    said.is_settled = false;
    try testing.expect(network.take(5, &said, .{ .sent = 90, .arrived = 60, .skipped = 4 }));
    try testing.expectEqual(Loss{ .expected = 50, .lost = 2 }, network.fromDevice());
    try testing.expectEqual(3, network.toDevice().lost);
    said.is_settled = true;
    try testing.expect(network.take(6, &said, .{ .sent = 10, .arrived = 9, .skipped = 0 }));
    try testing.expectEqual(Loss{ .expected = 60, .lost = 3 }, network.fromDevice());
    try testing.expectEqual(3, network.toDevice().lost);
}

test "final figures stay, whatever comes after them" {
    var said: stream.Network = .{ .is_final = true, .is_settled = true, .rtt_count = 2 };
    var network: Network = .init(5, &said, .{ .sent = 50, .arrived = 48 });
    // The same packet again, later.
    try testing.expect(!network.take(5, &said, .{ .sent = 58, .arrived = 56 }));
    said = .{};
    try testing.expect(!network.take(5, &said, .{}));
    try testing.expectEqual(2, network.said.rtt_count);
}

test "more skipped numbers than a device claims to have missed are none lost" {
    const said: stream.Network = .{ .expected = 3, .lost = 2 };
    const network: Network = .init(5, &said, .{ .skipped = 9 });
    try testing.expectEqual(Loss{ .expected = 0, .lost = 0 }, network.toDevice());
}

test "the journal brings it back" {
    const said: stream.Network = .{ .expected = 3, .lost = 2, .card = .{ .duplex = .half } };
    var network: Network = .init(std.math.maxInt(u64), &said, .{ .sent = 4, .arrived = 1 });
    _ = network.take(7, &.{ .is_settled = true, .expected = 9 }, .{ .sent = 1, .arrived = 1 });
    var buffer: [512]u8 = undefined;
    const text = try std.mem.print(&buffer, "{f}", .{std.json.fmt(network, .{})});
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const kept = try std.json.parseFromSliceLeaky(Network, arena.allocator(), text, .{});
    try testing.expectEqualDeep(network, kept);
    for ([_][]const u8{ "[\"00\",1,{},{}]", "[\"zz\",1,{},{}]", "[1,1,{},{}]" }) |wrong| {
        const parsed = std.json.parseFromSliceLeaky(Network, arena.allocator(), wrong, .{});
        try testing.expect(std.meta.isError(parsed));
    }
}
