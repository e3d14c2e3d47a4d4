//! Fuzzes messages between edges of a site: the parser alone, with any tags.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const key: peer.Key = @splat(7);

pub fn parser(case: *Case) Violation!bool {
    var buffer: [peer.packet_size_max + 64]u8 = undefined;
    const payload = makePayload(case, &buffer);
    const is_authentic = peer.isAuthentic(payload, &key);
    const message = peer.parse(payload) catch return false;
    var again: [peer.packet_size_max]u8 = undefined;
    const bytes = peer.emit(&message, &key, &again);
    try expect(bytes.len == payload.len, "a message has one form");
    const unsigned = payload.len - peer.tag_size;
    try expect(std.mem.eql(u8, bytes[0..unsigned], payload[0..unsigned]), "emit(parse(x)) == x");
    try expect(is_authentic == std.mem.eql(u8, bytes, payload), "only the right tag is authentic");
    return true;
}

fn makePayload(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    const message: peer.Message = .{
        .edge = uuid(case),
        .epoch = case.prng.nextU64() | 1,
        .counter = case.prng.nextU64() | 1,
        .body = switch (case.prng.below(4)) {
            0 => .{ .alive = alive(case) },
            1 => .{ .claim = claim(case) },
            2 => .{ .release = claim(case) },
            3 => .{ .holdings = holdings(case) },
            else => unreachable,
        },
    };
    var packet: [peer.packet_size_max]u8 = undefined;
    const bytes = peer.emit(&message, &key, &packet);
    @memcpy(buffer[0..bytes.len], bytes);
    return if (case.prng.chance(1, 4)) buffer[0..bytes.len] else case.mutate(buffer, bytes.len);
}

fn alive(case: *Case) peer.Alive {
    var said: peer.Alive = .{
        .booting = case.prng.nextU32(),
        .draining = case.prng.chance(1, 2),
        .starting = case.prng.chance(1, 2),
    };
    for (0..@intCast(case.prng.below(peer.heard_max + 1))) |_|
        said.heard.appendAssumeCapacity(.{ .edge = uuid(case), .epoch = case.prng.nextU64() });
    return said;
}

fn claim(case: *Case) peer.Claim {
    var mac: base.Mac = .fromInt(@truncate(case.prng.nextU64()));
    mac.bytes[0] = mac.bytes[0] & 0xfe | 2;
    return .{
        .boot = uuid(case),
        .mac = mac,
        .stage = if (case.prng.chance(1, 2)) .offered else .taken,
        .begun_by_loader = case.prng.chance(1, 2),
        .is_proved = case.prng.chance(1, 2),
        .age_ms = case.prng.nextU32(),
    };
}

fn holdings(case: *Case) peer.Holdings {
    var said: peer.Holdings = .{
        .first = .zero,
        .last = .fromBytes(@splat(0xff)),
        .http_port = @truncate(case.prng.nextU32()),
    };
    var version: u128 = 0;
    for (0..@intCast(case.prng.below(peer.holdings_max + 1))) |_| {
        version += 1 + (@as(u128, case.prng.nextU64()) << 50);
        var bytes: [16]u8 = undefined;
        std.mem.writeInt(u128, &bytes, version, .big);
        said.list.appendAssumeCapacity(.{
            .version = .fromBytes(bytes),
            .copy = @fromBackingInt(@as(u8, @intCast(case.prng.below(3)))),
        });
    }
    return said;
}

fn uuid(case: *Case) base.Uuid {
    var bytes: [16]u8 = undefined;
    case.prng.fill(&bytes);
    return .fromBytes(bytes);
}
