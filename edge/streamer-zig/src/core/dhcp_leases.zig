//! The DHCP server's pool: which address is whose, until when (RFC 2131 section 4.3.1). An address
//! stays with its device as long as the pool has others: also after its lease ran out, and, by a
//! start that is computed from the MAC, mostly even when the table was lost. It must never give one
//! address to two devices whose leases run.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const DhcpLeases = @This();

/// Index 0 is `first`.
rows: []Row,
first: Ip4,
options: Options,
/// Grows by each change that is worth keeping on disk.
change_count: u64 = 0,

/// Addresses in a pool; each packet may look at all of them.
pub const pool_size_max = 4096;
/// How long an offered address waits for its REQUEST: OVMF takes 4 s.
const offer_hold_us = 30 * std.time.us_per_s;
/// How long an address that a device found in use is left alone.
const decline_hold_us = 600 * std.time.us_per_s;

pub const Options = struct {
    first: Ip4,
    last: Ip4,
    /// The server's own address; never given away when it lies in the pool.
    server_ip: Ip4,
    lease_time_s: u32 = 3600,
};

/// `free` with a MAC that is not zero is an address that its last owner gets again.
const State = enum { free, reserved, offered, bound, declined };
const Row = struct { mac: Mac = .zero, state: State = .free, until_us: u64 = 0 };

/// A lease as the host keeps it on disk.
pub const Record = struct {
    ip: Ip4,
    mac: Mac,
    /// 0: it has run out, and the address is only remembered.
    remaining_us: u64,
};

/// BadPool: the last address is below the first, the pool is larger than 4096, or not of usable
/// addresses.
pub fn init(gpa: std.mem.Allocator, options: Options) error{ OutOfMemory, BadPool }!DhcpLeases {
    assert(options.lease_time_s > 0);
    const first = options.first.toInt();
    const last = options.last.toInt();
    if (!options.first.isUnicast()) return error.BadPool;
    if (!options.last.isUnicast()) return error.BadPool;
    if (last < first) return error.BadPool;
    if (last - first >= pool_size_max) return error.BadPool;
    const rows = try gpa.alloc(Row, last - first + 1);
    @memset(rows, .{});
    var leases: DhcpLeases = .{ .rows = rows, .first = options.first, .options = options };
    if (leases.rowOf(options.server_ip)) |row| row.state = .reserved;
    return leases;
}

pub fn deinit(leases: *DhcpLeases, gpa: std.mem.Allocator) void {
    gpa.free(leases.rows);
    leases.* = undefined;
}

/// Picks and holds an address for a DISCOVER. Null: every address is taken.
pub fn offer(leases: *DhcpLeases, now_us: u64, mac: Mac, wanted: ?Ip4) ?Ip4 {
    assert(mac.isDevice());
    leases.expire(now_us);
    const index = leases.pick(mac, wanted) orelse return null;
    const row = &leases.rows[index];
    assert(row.state != .reserved);
    assert(row.state != .declined);
    if (row.state != .bound)
        row.* = .{ .mac = mac, .state = .offered, .until_us = now_us + offer_hold_us };
    return leases.addressAt(index);
}

/// Grants an address for a REQUEST. False: it is another device's, not of the pool, or declined;
/// answer NAK.
pub fn bind(leases: *DhcpLeases, now_us: u64, mac: Mac, ip: Ip4) bool {
    assert(mac.isDevice());
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return false;
    switch (row.state) {
        .reserved, .declined => return false,
        .offered, .bound => if (!row.mac.eql(mac)) return false,
        .free => {},
    }
    for (leases.rows) |*other| {
        if (other != row and other.mac.eql(mac)) other.* = .{};
    }
    row.* = .{ .mac = mac, .state = .bound, .until_us = now_us + leases.leaseTimeUs() };
    leases.change_count += 1;
    return true;
}

/// RELEASE: the lease ends, the address is remembered. False: it was not this device's.
pub fn release(leases: *DhcpLeases, now_us: u64, mac: Mac, ip: Ip4) bool {
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return false;
    if (row.state != .bound) return false;
    if (!row.mac.eql(mac)) return false;
    row.state = .free;
    row.until_us = now_us;
    leases.change_count += 1;
    return true;
}

/// DECLINE: the device found the address in use. False: it was not this device's.
pub fn decline(leases: *DhcpLeases, now_us: u64, mac: Mac, ip: Ip4) bool {
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return false;
    if (row.state != .bound and row.state != .offered) return false;
    if (!row.mac.eql(mac)) return false;
    row.* = .{ .mac = .zero, .state = .declined, .until_us = now_us + decline_hold_us };
    leases.change_count += 1;
    return true;
}

/// The device took another server's offer: ours need not wait any longer.
pub fn dropOffer(leases: *DhcpLeases, now_us: u64, mac: Mac) void {
    for (leases.rows) |*row| {
        if (row.state != .offered) continue;
        if (!row.mac.eql(mac)) continue;
        row.state = .free;
        row.until_us = now_us;
    }
}

/// Who has this address now, by a lease that runs.
pub fn macOf(leases: *const DhcpLeases, now_us: u64, ip: Ip4) ?Mac {
    const index = leases.indexOf(ip) orelse return null;
    const row = leases.rows[index];
    if (row.state != .bound) return null;
    return if (row.until_us > now_us) row.mac else null;
}

/// All leases and remembered addresses, for the host to write down when `change_count` has grown.
pub fn dump(leases: *const DhcpLeases, now_us: u64) Iterator {
    return .{ .leases = leases, .now_us = now_us };
}

pub const Iterator = struct {
    leases: *const DhcpLeases,
    now_us: u64,
    index: u32 = 0,

    pub fn next(iterator: *Iterator) ?Record {
        while (iterator.index < iterator.leases.rows.len) {
            defer iterator.index += 1;
            const row = iterator.leases.rows[iterator.index];
            if (row.state != .bound and row.state != .free) continue;
            if (row.mac.eql(.zero)) continue;
            const remaining_us = if (row.state == .bound) row.until_us -| iterator.now_us else 0;
            const ip = iterator.leases.addressAt(iterator.index);
            return .{ .ip = ip, .mac = row.mac, .remaining_us = remaining_us };
        }
        return null;
    }
};

/// Takes back a record of `dump`. False: it does not fit this pool (another pool was configured)
/// and is left out.
pub fn restore(leases: *DhcpLeases, now_us: u64, record: Record) bool {
    if (!record.mac.isDevice()) return false;
    const row = leases.rowOf(record.ip) orelse return false;
    if (row.state != .free) return false;
    if (!row.mac.eql(.zero)) return false;
    for (leases.rows) |other| if (other.mac.eql(record.mac)) return false;
    const remaining_us = @min(record.remaining_us, leases.leaseTimeUs());
    row.* = .{
        .mac = record.mac,
        .state = if (remaining_us > 0) .bound else .free,
        .until_us = now_us + remaining_us,
    };
    return true;
}

fn leaseTimeUs(leases: *const DhcpLeases) u64 {
    return @as(u64, leases.options.lease_time_s) * std.time.us_per_s;
}

fn indexOf(leases: *const DhcpLeases, ip: Ip4) ?u32 {
    const number = ip.toInt();
    const first = leases.first.toInt();
    if (number < first) return null;
    if (number - first >= leases.rows.len) return null;
    return number - first;
}

fn rowOf(leases: *DhcpLeases, ip: Ip4) ?*Row {
    return &leases.rows[leases.indexOf(ip) orelse return null];
}

fn addressAt(leases: *const DhcpLeases, index: u32) Ip4 {
    assert(index < leases.rows.len);
    return .fromInt(leases.first.toInt() + index);
}

fn expire(leases: *DhcpLeases, now_us: u64) void {
    for (leases.rows) |*row| switch (row.state) {
        .free, .reserved => {},
        .offered, .bound, .declined => if (row.until_us <= now_us) {
            row.state = .free;
        },
    };
}

/// The device's own address, else the one it wants, else the next one that nobody had, else the one
/// that ran out longest ago.
fn pick(leases: *const DhcpLeases, mac: Mac, wanted: ?Ip4) ?u32 {
    for (leases.rows, 0..) |row, index| if (row.mac.eql(mac)) return @intCast(index);
    if (wanted) |ip| if (leases.indexOf(ip)) |index| if (isUnused(leases.rows[index])) return index;
    const size: u32 = @intCast(leases.rows.len);
    const start: u32 = @intCast(mac.toInt() % size);
    for (0..size) |step| {
        const index = (start + @as(u32, @intCast(step))) % size;
        if (isUnused(leases.rows[index])) return index;
    }
    var found: ?u32 = null;
    for (leases.rows, 0..) |row, index| {
        if (row.state != .free) continue;
        if (found == null or row.until_us < leases.rows[found.?].until_us) found = @intCast(index);
    }
    return found;
}

fn isUnused(row: Row) bool {
    return row.state == .free and row.mac.eql(.zero);
}

const testing = std.testing;
const second = std.time.us_per_s;

fn device(number: u48) Mac {
    return .fromInt(0x02bf00000000 + number);
}

fn testPool(size: u32) !DhcpLeases {
    const first: Ip4 = .init(10, 0, 0, 10);
    return .init(testing.allocator, .{
        .first = first,
        .last = .fromInt(first.toInt() + size - 1),
        .server_ip = .init(10, 0, 0, 1),
        .lease_time_s = 60,
    });
}

test "a device gets the same address again, also after its lease ran out" {
    var leases = try testPool(8);
    defer leases.deinit(testing.allocator);
    const ip = leases.offer(0, device(1), null).?;
    try testing.expect(leases.bind(1, device(1), ip));
    try testing.expectEqual(ip, leases.offer(1000 * second, device(1), null).?);
    try testing.expectEqual(ip, leases.offer(1000 * second, device(1), .init(10, 0, 0, 17)).?);
}

test "a running lease is given to nobody else, an expired one is when the pool is used up" {
    var leases = try testPool(2);
    defer leases.deinit(testing.allocator);
    const first = leases.offer(0, device(1), null).?;
    try testing.expect(leases.bind(0, device(1), first));
    const second_ip = leases.offer(0, device(2), first).?;
    try testing.expect(!first.eql(second_ip));
    try testing.expect(leases.bind(5, device(2), second_ip));
    try testing.expect(!leases.bind(6, device(2), first));
    try testing.expectEqual(null, leases.offer(6, device(3), null));
    try testing.expectEqual(first, leases.offer(61 * second, device(3), null).?);
    try testing.expect(!leases.bind(61 * second, device(1), first));
}

test "an offer is held for its device and then free" {
    var leases = try testPool(1);
    defer leases.deinit(testing.allocator);
    const ip = leases.offer(0, device(1), null).?;
    try testing.expectEqual(null, leases.offer(29 * second, device(2), null));
    leases.dropOffer(29 * second, device(1));
    try testing.expectEqual(ip, leases.offer(29 * second, device(2), null).?);
    try testing.expectEqual(ip, leases.offer(60 * second, device(3), null).?);
}

test "a declined address rests and a released one is free for its owner and others" {
    var leases = try testPool(1);
    defer leases.deinit(testing.allocator);
    const ip = leases.offer(0, device(1), null).?;
    try testing.expect(!leases.decline(0, device(2), ip));
    try testing.expect(leases.decline(0, device(1), ip));
    try testing.expectEqual(null, leases.offer(599 * second, device(1), null));
    try testing.expect(!leases.bind(599 * second, device(1), ip));
    try testing.expectEqual(ip, leases.offer(600 * second, device(2), null).?);
    try testing.expect(leases.bind(600 * second, device(2), ip));
    try testing.expect(!leases.release(600 * second, device(1), ip));
    try testing.expect(leases.release(600 * second, device(2), ip));
    try testing.expectEqual(ip, leases.offer(600 * second, device(3), null).?);
}

test "the server's own address is never given away" {
    var leases: DhcpLeases = try .init(testing.allocator, .{
        .first = .init(10, 0, 0, 1),
        .last = .init(10, 0, 0, 1),
        .server_ip = .init(10, 0, 0, 1),
    });
    defer leases.deinit(testing.allocator);
    try testing.expectEqual(null, leases.offer(0, device(1), .init(10, 0, 0, 1)));
    try testing.expect(!leases.bind(0, device(1), .init(10, 0, 0, 1)));
}

test "dumped leases come back, and ones of another pool are left out" {
    var leases = try testPool(8);
    defer leases.deinit(testing.allocator);
    const ip = leases.offer(0, device(1), null).?;
    try testing.expect(leases.bind(0, device(1), ip));
    const old = leases.offer(0, device(2), null).?;
    try testing.expect(leases.bind(0, device(2), old));
    try testing.expect(leases.release(1, device(2), old));
    try testing.expectEqual(3, leases.change_count);

    var restored = try testPool(8);
    defer restored.deinit(testing.allocator);
    var records = leases.dump(10 * second);
    while (records.next()) |record| try testing.expect(restored.restore(500 * second, record));
    try testing.expectEqual(device(1), restored.macOf(549 * second, ip).?);
    try testing.expectEqual(null, restored.macOf(550 * second, ip));
    try testing.expectEqual(null, restored.macOf(500 * second, old));
    try testing.expectEqual(old, restored.offer(500 * second, device(2), null).?);
    const foreign: Record = .{ .ip = .init(10, 9, 9, 9), .mac = device(3), .remaining_us = 1 };
    try testing.expect(!restored.restore(0, foreign));
}

test "a pool that makes no sense is refused" {
    const server_ip: Ip4 = .init(10, 0, 0, 1);
    const wrong = [_]Options{
        .{ .first = .init(10, 0, 0, 9), .last = .init(10, 0, 0, 8), .server_ip = server_ip },
        .{ .first = .init(10, 0, 0, 0), .last = .init(10, 0, 16, 0), .server_ip = server_ip },
        .{ .first = .zero, .last = .init(0, 0, 0, 9), .server_ip = server_ip },
        .{ .first = .init(224, 0, 0, 1), .last = .init(224, 0, 0, 9), .server_ip = server_ip },
    };
    for (wrong) |options| try testing.expectError(error.BadPool, init(testing.allocator, options));
}
