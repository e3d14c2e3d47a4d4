//! A device alone, for tests: a test plays its edge packet by packet, in clear text, so that it
//! knows every packet and every time.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamClient = @import("client.zig");
const assert = std.debug.assert;
const testing = std.testing;

pub const TestDevice = @This();

client: StreamClient,
now_us: u64 = 1_000_000,
/// When it last had its turn: time never goes back.
turn_at_us: u64 = 0,
out: [wire.sealed_request_size_max]u8 = undefined,

pub const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
pub const edge: base.Endpoint = .{ .ip = .init(10, 0, 0, 9), .port = 6910 };
pub const others = [_]base.Endpoint{
    .{ .ip = .init(10, 0, 0, 1), .port = 6910 },
    .{ .ip = .init(10, 0, 0, 2), .port = 6910 },
};
pub const ticket: wire.ticket.Sealed = @splat(0x71);
pub const session_id = 0x1234;
pub const version_tag = 0x5678;
/// Time from a packet to its answer while the session is opened.
pub const round_trip_us = 200;
/// The timeout that follows from it.
pub const timeout_us = 2000;

pub const welcome_usual: wire.Welcome = .{
    .client_nonce = undefined,
    .cipher = .clear,
    .version_tag = version_tag,
    .disk_size = 4 << 20,
    .fragment_size = wire.fragment_size_ethernet,
    .read_size_max = wire.read_size_max,
    .outstanding_bytes_max = 1 << 20,
    .resume_secret = @splat(0x5e),
    .version_id = @splat(0xdd),
};

pub fn init(options: StreamClient.Options) !TestDevice {
    return initIn(.v2, options);
}

/// With a device that offers this version, and older ones.
pub fn initIn(version_max: wire.Version, options: StreamClient.Options) !TestDevice {
    var own = options;
    own.ciphers = own.ciphers orelse .{ .clear = true };
    // Tests of version 3 say so.
    own.version_max = version_max;
    var device: TestDevice = .{ .client = try .init(testing.allocator, own) };
    device.client.start(device.now_us, identity());
    return device;
}

pub fn identity() StreamClient.Identity {
    return .{
        .boot_id = boot_id,
        .token = @splat(0x70),
        .nonce_seed = @splat(0x11),
        .edge = edge,
    };
}

/// With an open session, and no event left.
pub fn initOpen(options: StreamClient.Options) !TestDevice {
    var device: TestDevice = try .init(options);
    errdefer device.deinit();
    try device.open(welcome_usual);
    try testing.expect(device.client.nextEvent().? == .established);
    return device;
}

/// The same with an edge that names two others.
pub fn initWithOthers(options: StreamClient.Options) !TestDevice {
    var device: TestDevice = try .init(options);
    errdefer device.deinit();
    var welcome = welcome_usual;
    welcome.failover = .{ .lifetime_s = 100, .edges = .empty, .ticket = ticket };
    for (others) |other| welcome.failover.?.edges.appendAssumeCapacity(other);
    try device.open(welcome);
    try testing.expect(device.client.nextEvent().? == .established);
    return device;
}

pub fn deinit(device: *TestDevice) void {
    device.client.deinit(testing.allocator);
}

/// Returns the packet that the device sends now, if any.
pub fn next(device: *TestDevice) !?wire.Packet {
    assert(device.now_us >= device.turn_at_us);
    device.turn_at_us = device.now_us;
    const bytes = device.client.transmit(device.now_us, &device.out) orelse return null;
    return try wire.parse(bytes);
}

pub fn expectNothing(device: *TestDevice) !void {
    assert(device.client.state != .idle);
    try testing.expectEqual(null, try device.next());
}

/// Nothing is sent until `at_us`, and the device says so.
pub fn expectNothingUntil(device: *TestDevice, at_us: u64) !void {
    assert(at_us > device.now_us);
    try device.expectNothing();
    try testing.expectEqual(at_us, device.client.deadline());
    device.now_us = at_us - 1;
    try device.expectNothing();
    device.now_us = at_us;
}

/// The edge's packet arrives now.
pub fn take(device: *TestDevice, packet: wire.Packet) void {
    assert(device.client.last_packet_at_us <= device.now_us);
    var bytes: [wire.packet_size_max]u8 = undefined;
    device.client.receive(device.now_us, wire.emit(packet, &bytes));
}

/// The packet arrives now and is dropped as none of this boot.
pub fn expectIgnored(device: *TestDevice, packet: wire.Packet) !void {
    const before = device.client.statistics.ignored;
    assert(before <= device.client.statistics.packets_in);
    device.take(packet);
    try testing.expectEqual(before + 1, device.client.statistics.ignored);
}

pub fn expectTaken(device: *TestDevice, packet: wire.Packet) !void {
    const before = device.client.statistics.ignored;
    assert(device.client.state != .idle);
    device.take(packet);
    try testing.expectEqual(before, device.client.statistics.ignored);
}

/// Answers the HELLO that is due with COOKIE, and the next one with WELCOME.
pub fn open(device: *TestDevice, welcome: wire.Welcome) !void {
    assert(device.client.state == .greeting);
    const first = (try device.next()).?.body.hello;
    device.now_us += round_trip_us;
    try device.expectTaken(cookieOf(&first));
    const second = (try device.next()).?.body.hello;
    device.now_us += round_trip_us;
    try device.expectTaken(welcomeOf(&second, welcome));
    assert(device.client.state != .greeting);
}

pub fn cookieOf(hello: *const wire.Hello) wire.Packet {
    return .{ .body = .{
        .cookie = .{ .client_nonce = hello.client_nonce, .cookie = @splat(0xc0) },
    } };
}

pub fn welcomeOf(hello: *const wire.Hello, welcome: wire.Welcome) wire.Packet {
    var body = welcome;
    body.client_nonce = hello.client_nonce;
    return .{ .session_id = session_id, .body = .{ .welcome = body } };
}

pub fn refusalOf(hello: *const wire.Hello, code: wire.RefuseCode) wire.Packet {
    return .{ .body = .{ .refuse = .{ .client_nonce = hello.client_nonce, .code = code } } };
}

/// A packet of the session.
pub fn packetOf(request_id: u32, body: wire.Body) wire.Packet {
    return .{ .session_id = session_id, .request_id = request_id, .body = body };
}

/// Byte of the disk at `offset`.
pub fn byteAt(offset: u64) u8 {
    return @truncate(offset *% 0x9e3779b97f4a7c15 >> 32);
}

/// Answers fragment `index` of this READ.
pub fn answer(device: *TestDevice, asked: *const Asked, index: u16) !void {
    assert(asked.length > 0);
    var payload: [wire.fragment_size_max]u8 = undefined;
    const size = wire.fragmentLength(asked.length, asked.fragment_size, index);
    const begin = asked.offset + @as(u64, index) * asked.fragment_size;
    for (payload[0..size], begin..) |*byte, at| byte.* = byteAt(at);
    try device.expectTaken(packetOf(asked.request_id, .{
        .data = .{ .index = index, .payload = payload[0..size] },
    }));
}

pub fn answerAll(device: *TestDevice, asked: *const Asked) !void {
    assert(asked.fragment_size > 0);
    for (0..wire.fragmentCount(asked.length, asked.fragment_size)) |index|
        try device.answer(asked, @intCast(index));
}

/// What a READ asks for.
pub const Asked = struct {
    request_id: u32,
    kind: wire.ReadKind,
    fragment_size: u16,
    offset: u64,
    length: u32,
    attempt: u16,
    /// Of the first three ranges; a count of 0: there is none.
    ranges: [3]wire.Range,
};

/// The READ that the device sends now.
pub fn nextRead(device: *TestDevice) !?Asked {
    assert(device.client.state == .established);
    const packet = try device.next() orelse return null;
    try testing.expectEqual(session_id, packet.session_id);
    const read = packet.body.read;
    try testing.expectEqual(version_tag, read.version_tag);
    var ranges: [3]wire.Range = @splat(.{ .first_fragment = 0, .fragment_count = 0 });
    const count = @min(ranges.len, read.ranges.count());
    for (ranges[0..count], 0..) |*range, index| range.* = read.ranges.at(@intCast(index));
    return .{
        .request_id = packet.request_id,
        .kind = read.kind,
        .fragment_size = read.fragment_size,
        .offset = read.offset,
        .length = read.length,
        .attempt = read.attempt,
        .ranges = ranges,
    };
}
