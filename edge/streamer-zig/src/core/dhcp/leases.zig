//! The leases of one network: who has which address, until when (RFC 2131 section 4.3.1). A client
//! keeps its address while the pool has free ones, even after its lease expired, and usually even
//! if the table was lost, since the search starts at a slot computed from the MAC address.
//! Invariant: no address is leased to two clients at a time, nor a reserved address to another
//! client.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp_network = @import("network.zig");
const Ip4 = base.Ip4;
const Mac = base.Mac;
const Network = dhcp_network.Network;

pub const DhcpLeases = @This();

/// In the order of their addresses.
rows: []Row,
network: *const Network,
/// Incremented by each change that must be stored on disk.
change_count: u64 = 0,
/// Rows changed since the last `takeChange`.
changed_count: u32 = 0,

pub const pool_size_max = dhcp_network.pool_size_max;
/// How long an offered address waits for its REQUEST: OVMF takes 4 s.
const offer_hold_us = 30 * std.time.us_per_s;
/// How long an address that a client found in use is avoided.
const decline_hold_us = 600 * std.time.us_per_s;

/// Identifies the owner of an address. The identifier is empty if the client sent none, or only its
/// MAC address in another form (type 1, RFC 2132 section 9.14).
pub const Client = struct {
    mac: Mac,
    id: Id = .empty,
    by: dhcp_network.IdentifyBy = .client_id,

    /// Longer identifiers are replaced by their digest.
    pub const id_size_max = 64;
    pub const Id = base.BoundedArray(u8, id_size_max);
    pub const nobody: Client = .{ .mac = .zero };

    pub fn of(mac: Mac, client_identifier: ?[]const u8, by: dhcp_network.IdentifyBy) Client {
        var client: Client = .{ .mac = mac, .by = by };
        const id = client_identifier orelse return client;
        const is_mac = id.len == 7 and id[0] == 1 and std.mem.eql(u8, id[1..], &mac.bytes);
        // RFC 2132 section 9.14: at least two bytes.
        if (id.len < 2 or is_mac) return client;
        var digest: [32]u8 = undefined;
        if (id.len > id_size_max) base.Sha256.hash(id, &digest, .{});
        client.id = Id.fromSlice(if (id.len > id_size_max) &digest else id) catch unreachable;
        return client;
    }

    pub fn eql(a: *const Client, b: *const Client) bool {
        if (a.by == .mac or (a.id.count == 0 and b.id.count == 0)) return a.mac.eql(b.mac);
        return std.mem.eql(u8, a.id.constSlice(), b.id.constSlice());
    }

    pub fn isUnknown(client: *const Client) bool {
        return client.mac.eql(.zero);
    }

    fn has(client: *const Client, reservation: *const dhcp_network.Reservation) bool {
        if (reservation.mac) |mac| if (mac.eql(client.mac)) return true;
        const requested: Client =
            .of(client.mac, reservation.client_id orelse return false, .client_id);
        if (requested.id.count == 0) return client.id.count == 0;
        return std.mem.eql(u8, requested.id.constSlice(), client.id.constSlice());
    }
};

/// A `free` row with a client is an address that its previous owner gets again.
const State = enum { free, own, offered, bound, declined };
const Row = struct {
    ip: Ip4,
    /// Index into the network's reservations.
    reservation: ?u32 = null,
    client: Client = .nobody,
    state: State = .free,
    until_us: u64 = 0,
    changed: bool = false,

    fn isUnused(row: *const Row) bool {
        return row.state == .free and row.client.isUnknown() and row.reservation == null;
    }
};

/// The state of an address as the host stores it on disk.
pub const Record = struct {
    ip: Ip4,
    /// Unknown for an address that is declined or no longer remembered.
    client: Client,
    state: enum { remembered, bound, declined },
    /// 0 for an address that is only remembered.
    remaining_us: u64,
};

/// `network` passed `dhcp_network.problemOf`, and must not move.
pub fn init(
    gpa: std.mem.Allocator,
    network: *const Network,
    links: []const dhcp_network.Link,
) error{OutOfMemory}!DhcpLeases {
    var size: usize = network.reservations.len;
    for (network.pools) |pool| size += pool.last.toInt() - pool.first.toInt() + 1;
    assert(size <= pool_size_max);
    var rows: std.ArrayList(Row) = try .initCapacity(gpa, size);
    defer rows.deinit(gpa);
    for (network.pools) |pool| {
        for (pool.first.toInt()..@as(usize, pool.last.toInt()) + 1) |number|
            rows.appendAssumeCapacity(.{ .ip = .fromInt(@intCast(number)) });
    }
    for (network.reservations, 0..) |*reservation, index| {
        const number: u32 = @intCast(index);
        const row = for (rows.items) |*row| {
            if (row.ip.eql(reservation.ip)) break row;
        } else null;
        if (row) |known| known.reservation =
            number else rows.appendAssumeCapacity(.{ .ip = reservation.ip, .reservation = number });
    }
    std.sort.pdq(Row, rows.items, {}, isBefore);
    for (rows.items) |*row| for (links) |link| {
        if (row.ip.eql(link.ip)) row.state = .own;
    };
    return .{ .rows = try rows.toOwnedSlice(gpa), .network = network };
}

pub fn deinit(leases: *DhcpLeases, gpa: std.mem.Allocator) void {
    gpa.free(leases.rows);
    leases.* = undefined;
}

/// Picks and holds an address for a DISCOVER. Null: every address is taken.
pub fn offer(leases: *DhcpLeases, now_us: u64, client: *const Client, requested: ?Ip4) ?Ip4 {
    assert(client.mac.isDevice());
    leases.expire(now_us);
    const row = leases.pick(client, requested) orelse
        leases.oldestOffer(now_us) orelse return null;
    assert(row.state != .own);
    assert(row.state != .declined);
    if (row.state != .bound) {
        row.client = client.*;
        row.state = .offered;
        row.until_us = now_us + offer_hold_us;
    }
    assert(leases.isFor(row, client));
    return row.ip;
}

/// A client sends its REQUEST well within this time. An older offer is given up if no address is
/// free: otherwise made-up MAC addresses would keep all of them.
const offer_kept_us = 2 * std.time.us_per_s;

fn oldestOffer(leases: *DhcpLeases, now_us: u64) ?*Row {
    var oldest: ?*Row = null;
    for (leases.rows) |*row| {
        if (row.state != .offered or row.reservation != null) continue;
        if (row.until_us > now_us + offer_hold_us - offer_kept_us) continue;
        if (oldest == null or row.until_us < oldest.?.until_us) oldest = row;
    }
    return oldest;
}

pub const BindResult = enum {
    granted,
    /// It is another client's, declined, or reserved: answer NAK.
    taken,
    /// It is not one of these addresses.
    unknown,
};

/// Grants an address for a REQUEST.
pub fn bind(
    leases: *DhcpLeases,
    now_us: u64,
    client: *const Client,
    ip: Ip4,
    lease_time_s: u32,
) BindResult {
    assert(client.mac.isDevice());
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return .unknown;
    if (!leases.isFor(row, client)) return .taken;
    switch (row.state) {
        .own, .declined => return .taken,
        .offered, .bound => if (!row.client.eql(client)) return .taken,
        .free => {},
    }
    // A client with a reservation returns to it as soon as it is free.
    if (leases.reservedFor(client)) |reserved| if (reserved != row) return .taken;
    for (leases.rows) |*other| {
        if (other == row) continue;
        if (!other.client.eql(client)) continue;
        other.client = .nobody;
        other.state = .free;
        leases.change(other);
    }
    assert(row.state != .own);
    row.client = client.*;
    row.state = .bound;
    row.until_us = now_us + @as(u64, lease_time_s) * std.time.us_per_s;
    leases.change(row);
    assert(leases.changed_count > 0);
    return .granted;
}

/// Tells whether this client has or had the address, or was offered it.
pub fn isOf(leases: *DhcpLeases, client: *const Client, ip: Ip4) bool {
    const row = leases.rowOf(ip) orelse return false;
    return row.client.eql(client) or (row.reservation != null and leases.isFor(row, client));
}

/// RELEASE: the lease ends, the address is remembered. Returns false if it was not this client's.
pub fn release(leases: *DhcpLeases, now_us: u64, client: *const Client, ip: Ip4) bool {
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return false;
    if (row.state != .bound) return false;
    if (!row.client.eql(client)) return false;
    row.state = .free;
    row.until_us = now_us;
    leases.change(row);
    assert(leases.changed_count > 0);
    return true;
}

/// DECLINE: the client found the address in use. Returns false if it was not this client's.
pub fn decline(leases: *DhcpLeases, now_us: u64, client: *const Client, ip: Ip4) bool {
    leases.expire(now_us);
    const row = leases.rowOf(ip) orelse return false;
    if (row.state != .bound and row.state != .offered) return false;
    if (!row.client.eql(client)) return false;
    assert(row.state != .own);
    row.client = .nobody;
    row.state = .declined;
    row.until_us = now_us + decline_hold_us;
    leases.change(row);
    assert(leases.changed_count > 0);
    return true;
}

/// The client took another server's offer: ours is released at once.
pub fn dropOffer(leases: *DhcpLeases, now_us: u64, client: *const Client) void {
    for (leases.rows) |*row| {
        if (row.state != .offered) continue;
        if (!row.client.eql(client)) continue;
        row.state = .free;
        row.until_us = now_us;
    }
}

/// Returns the owner of a running lease of this address.
pub fn macOf(leases: *const DhcpLeases, now_us: u64, ip: Ip4) ?Mac {
    const row = leases.rows[leases.indexOf(ip) orelse return null];
    if (row.state != .bound) return null;
    return if (row.until_us > now_us) row.client.mac else null;
}

/// Returns the host name of a client's reservation.
pub fn hostNameOf(leases: *const DhcpLeases, client: *const Client) ?[]const u8 {
    for (leases.network.reservations) |*reservation|
        if (client.has(reservation)) return reservation.host_name;
    return null;
}

/// Returns the new state of an address whose record on disk is outdated; null when there is none
/// left.
pub fn takeChange(leases: *DhcpLeases, now_us: u64) ?Record {
    if (leases.changed_count == 0) return null;
    assert(leases.changed_count <= leases.rows.len);
    const row = for (leases.rows) |*row| {
        if (row.changed) break row;
    } else unreachable;
    row.changed = false;
    leases.changed_count -= 1;
    return recordOf(row, now_us);
}

/// Iterates over all leases, remembered and declined addresses, for the host to rewrite its file.
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
            const row = &iterator.leases.rows[iterator.index];
            if (row.state == .own or row.state == .offered) continue;
            if (row.state != .declined and row.client.isUnknown()) continue;
            return recordOf(row, iterator.now_us);
        }
        return null;
    }
};

/// Restores a record of `dump` or `takeChange`. Returns false if it does not fit this network
/// (another pool was configured) and is left out.
pub fn restore(leases: *DhcpLeases, now_us: u64, record: *const Record) bool {
    const row = leases.rowOf(record.ip) orelse return false;
    if (row.state != .free) return false;
    if (!row.client.isUnknown()) return false;
    if (record.state == .declined) {
        row.state = .declined;
        row.until_us = now_us + @min(record.remaining_us, decline_hold_us);
        return true;
    }
    if (!record.client.mac.isDevice()) return false;
    for (leases.rows) |*other|
        if (!other.client.isUnknown() and other.client.eql(&record.client)) return false;
    const longest_s = @max(leases.network.lease_time_max_s, leases.network.lease_time_s);
    const remaining_us = @min(record.remaining_us, @as(u64, longest_s) * std.time.us_per_s);
    assert(row.state == .free);
    row.client = record.client;
    row.client.by = leases.network.identify_by;
    row.state = if (record.state == .bound and remaining_us > 0) .bound else .free;
    row.until_us = now_us + remaining_us;
    return true;
}

fn recordOf(row: *const Row, now_us: u64) Record {
    return switch (row.state) {
        .bound => .{
            .ip = row.ip,
            .client = row.client,
            .state = .bound,
            .remaining_us = row.until_us -| now_us,
        },
        .declined => .{
            .ip = row.ip,
            .client = .nobody,
            .state = .declined,
            .remaining_us = row.until_us -| now_us,
        },
        // An offer does not survive the process: its client retransmits.
        .free, .offered, .own => .{
            .ip = row.ip,
            .client = row.client,
            .state = .remembered,
            .remaining_us = 0,
        },
    };
}

fn change(leases: *DhcpLeases, row: *Row) void {
    leases.change_count += 1;
    if (row.changed) return;
    row.changed = true;
    leases.changed_count += 1;
    assert(leases.changed_count <= leases.rows.len);
}

fn isBefore(_: void, a: Row, b: Row) bool {
    return a.ip.toInt() < b.ip.toInt();
}

fn indexOf(leases: *const DhcpLeases, ip: Ip4) ?usize {
    return std.sort.binarySearch(Row, leases.rows, ip, struct {
        fn order(requested: Ip4, row: Row) std.math.Order {
            return std.math.order(requested.toInt(), row.ip.toInt());
        }
    }.order);
}

fn rowOf(leases: *DhcpLeases, ip: Ip4) ?*Row {
    return &leases.rows[leases.indexOf(ip) orelse return null];
}

/// A reserved address is for its client alone.
fn isFor(leases: *const DhcpLeases, row: *const Row, client: *const Client) bool {
    const index = row.reservation orelse return true;
    return client.has(&leases.network.reservations[index]);
}

/// Returns the address reserved for this client, unless another client still has it or it was found
/// in use.
fn reservedFor(leases: *DhcpLeases, client: *const Client) ?*Row {
    for (leases.rows) |*row| {
        if (row.reservation == null) continue;
        if (!leases.isFor(row, client)) continue;
        return switch (row.state) {
            .own, .declined => null,
            .free => row,
            .offered, .bound => if (row.client.eql(client)) row else null,
        };
    }
    return null;
}

fn expire(leases: *DhcpLeases, now_us: u64) void {
    for (leases.rows) |*row| switch (row.state) {
        .free, .own => {},
        .offered, .bound, .declined => if (row.until_us <= now_us) {
            row.state = .free;
        },
    };
}

/// In order of preference: the client's reserved address, the one that it has or had, the one that
/// it requests, the next one never used, the one that expired first.
fn pick(leases: *DhcpLeases, client: *const Client, requested: ?Ip4) ?*Row {
    if (leases.reservedFor(client)) |row| return row;
    for (leases.rows) |*row| {
        if (row.state == .own or row.state == .declined) continue;
        if (row.client.eql(client) and leases.isFor(row, client)) return row;
    }
    if (requested) |ip| if (leases.rowOf(ip)) |row| if (row.isUnused()) return row;
    const size: u64 = leases.rows.len;
    const start = if (size > 0) client.mac.toInt() % size else 0;
    for (0..size) |step| {
        const row = &leases.rows[(start + step) % size];
        if (row.isUnused()) return row;
    }
    var found: ?*Row = null;
    for (leases.rows) |*row| {
        if (row.state != .free or row.reservation != null) continue;
        if (found == null or row.until_us < found.?.until_us) found = row;
    }
    return found;
}

test {
    _ = @import("leases_test.zig");
}
