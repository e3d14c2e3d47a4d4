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
changed_rows: base.SlotSet,
/// Rows that `Row.isUnused`.
unused_rows: base.SlotSet,
/// Rows whose client is known, by what identifies it.
by_client: base.SlotIndex(u64),
/// Reserved rows, by the MAC address and by the client identifier that they are for.
by_reserved_mac: base.SlotIndex(u64),
by_reserved_id: base.SlotIndex(u64),
/// By row: until when its client has it; `never` where it is nobody's, reserved or not to give.
untils_us: []u64,
/// The same of rows that are only offered.
offers_us: []u64,
/// No declined row is free before.
declined_until_us: u64 = never,

const never = std.math.maxInt(u64);
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
    /// Until then the record on disk keeps it for its client.
    recorded_until_us: u64 = 0,

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
    var leases = try allocate(gpa, rows.items, network);
    for (leases.rows, 0..) |*row, index| {
        leases.put(row, .nobody, row.state, 0);
        leases.indexReservation(row, @intCast(index));
    }
    return leases;
}

fn allocate(
    gpa: std.mem.Allocator,
    rows: []const Row,
    network: *const Network,
) error{OutOfMemory}!DhcpLeases {
    const count: u32 = @intCast(rows.len);
    const own = try gpa.dupe(Row, rows);
    errdefer gpa.free(own);
    var changed_rows: base.SlotSet = try .initEmpty(gpa, count);
    errdefer changed_rows.deinit(gpa);
    var unused_rows: base.SlotSet = try .initEmpty(gpa, count);
    errdefer unused_rows.deinit(gpa);
    const slots = @max(1, count);
    // Whoever fills a chain has leased as many addresses.
    var by_client: base.SlotIndex(u64) = try .init(gpa, slots, 0);
    errdefer by_client.deinit(gpa);
    var by_reserved_mac: base.SlotIndex(u64) = try .init(gpa, slots, 0);
    errdefer by_reserved_mac.deinit(gpa);
    var by_reserved_id: base.SlotIndex(u64) = try .init(gpa, slots, 0);
    errdefer by_reserved_id.deinit(gpa);
    const untils_us = try gpa.alloc(u64, count);
    errdefer gpa.free(untils_us);
    return .{
        .rows = own,
        .network = network,
        .changed_rows = changed_rows,
        .unused_rows = unused_rows,
        .by_client = by_client,
        .by_reserved_mac = by_reserved_mac,
        .by_reserved_id = by_reserved_id,
        .untils_us = untils_us,
        .offers_us = try gpa.alloc(u64, count),
    };
}

fn indexReservation(leases: *DhcpLeases, row: *const Row, index: u32) void {
    const reservation = &leases.network.reservations[row.reservation orelse return];
    if (reservation.mac) |mac| leases.by_reserved_mac.put(index, mac.toInt());
    const client: Client = .of(.zero, reservation.client_id orelse return, .client_id);
    if (client.id.count > 0) leases.by_reserved_id.put(index, idKey(client.id.constSlice()));
}

fn idKey(id: []const u8) u64 {
    return std.hash.Wyhash.hash(0, id) | 1 << 63;
}

/// Clients that are the same have the same key.
fn keyOf(client: *const Client) u64 {
    if (client.by == .mac or client.id.count == 0) return client.mac.toInt();
    return idKey(client.id.constSlice());
}

/// The only function that changes a row, so that the indices stay right.
fn put(leases: *DhcpLeases, row: *Row, client: Client, state: State, until_us: u64) void {
    const index: u32 = @intCast(row - leases.rows.ptr);
    assert(row.state != .own or state == .own);
    // The record on disk is another client's.
    if (!row.client.eql(&client)) row.recorded_until_us = 0;
    row.client = client;
    row.state = state;
    row.until_us = until_us;
    leases.by_client.set(index, if (client.isUnknown()) 0 else keyOf(&client));
    leases.unused_rows.setValue(index, row.isUnused());
    const is_open = row.reservation == null and state != .own and state != .declined;
    leases.untils_us[index] = if (is_open and !client.isUnknown()) until_us else never;
    leases.offers_us[index] = if (is_open and state == .offered) until_us else never;
    if (state == .declined) leases.declined_until_us = @min(leases.declined_until_us, until_us);
}

/// Iterates over the rows that are reserved for a client.
const ReservedRows = struct {
    leases: *const DhcpLeases,
    client: *const Client,
    by_mac: ?u32,
    by_id: ?u32,

    fn of(leases: *const DhcpLeases, client: *const Client) ReservedRows {
        // Who sends no identifier is known by its MAC address in the form of one.
        const own_id = [_]u8{1} ++ client.mac.bytes;
        const id = if (client.id.count > 0) client.id.constSlice() else &own_id;
        return .{
            .leases = leases,
            .client = client,
            .by_mac = leases.by_reserved_mac.first(client.mac.toInt()),
            .by_id = leases.by_reserved_id.first(idKey(id)),
        };
    }

    fn next(rows: *ReservedRows) ?u32 {
        while (rows.by_mac) |index| {
            rows.by_mac = rows.leases.by_reserved_mac.next(index);
            if (rows.isTheirs(index)) return index;
        }
        while (rows.by_id) |index| {
            rows.by_id = rows.leases.by_reserved_id.next(index);
            if (rows.isTheirs(index)) return index;
        }
        return null;
    }

    fn isTheirs(rows: *const ReservedRows, index: u32) bool {
        return rows.leases.isFor(&rows.leases.rows[index], rows.client);
    }
};

pub fn deinit(leases: *DhcpLeases, gpa: std.mem.Allocator) void {
    gpa.free(leases.rows);
    leases.changed_rows.deinit(gpa);
    leases.unused_rows.deinit(gpa);
    leases.by_client.deinit(gpa);
    leases.by_reserved_mac.deinit(gpa);
    leases.by_reserved_id.deinit(gpa);
    gpa.free(leases.untils_us);
    gpa.free(leases.offers_us);
    leases.* = undefined;
}

/// Picks and holds an address for a DISCOVER. Null: every address is taken.
pub fn offer(leases: *DhcpLeases, now_us: u64, client: *const Client, requested: ?Ip4) ?Ip4 {
    assert(client.mac.isDevice());
    leases.expireDeclined(now_us);
    const row = leases.pick(now_us, client, requested) orelse
        leases.oldestOffer(now_us) orelse return null;
    assert(row.state != .own);
    assert(row.state != .declined);
    if (leases.stateOf(now_us, row) != .bound)
        leases.put(row, client.*, .offered, now_us + offer_hold_us);
    assert(leases.isFor(row, client));
    return row.ip;
}

/// A client sends its REQUEST well within this time. An older offer is given up if no address is
/// free: otherwise made-up MAC addresses would keep all of them.
const offer_kept_us = 2 * std.time.us_per_s;

fn oldestOffer(leases: *DhcpLeases, now_us: u64) ?*Row {
    assert(leases.offers_us.len == leases.rows.len);
    if (leases.rows.len == 0) return null;
    const index = minimumOf(leases.offers_us);
    if (leases.offers_us[index] > now_us + offer_hold_us - offer_kept_us) return null;
    assert(leases.rows[index].state == .offered);
    return &leases.rows[index];
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
    leases.expireDeclined(now_us);
    const row = leases.rowOf(ip) orelse return .unknown;
    if (!leases.isFor(row, client)) return .taken;
    switch (leases.stateOf(now_us, row)) {
        .own, .declined => return .taken,
        .offered, .bound => if (!row.client.eql(client)) return .taken,
        .free => {},
    }
    // A client with a reservation returns to it as soon as it is free.
    if (leases.reservedFor(now_us, client)) |reserved| if (reserved != row) return .taken;
    leases.freeOthers(row, client);
    assert(row.state != .own);
    const is_renewal = row.state == .bound and row.client.eql(client);
    const lease_us = @as(u64, lease_time_s) * std.time.us_per_s;
    leases.put(row, client.*, .bound, now_us + lease_us);
    if (row.until_us > row.recorded_until_us) {
        row.recorded_until_us = row.until_us + if (is_renewal) renewals_ahead * lease_us else 0;
        leases.change(row);
    }
    return .granted;
}

/// A client that renews its lease has it for longer on the disk, so that few renewals are written.
/// After a restart it has the address for that long, as far as the longest lease allows.
const renewals_ahead = 4;

fn freeOthers(leases: *DhcpLeases, row: *const Row, client: *const Client) void {
    assert(!client.isUnknown());
    var at = leases.by_client.first(keyOf(client));
    while (at) |index| {
        at = leases.by_client.next(index);
        const other = &leases.rows[index];
        if (other == row or !other.client.eql(client)) continue;
        leases.put(other, .nobody, .free, other.until_us);
        leases.change(other);
    }
}

/// Tells whether this client has or had the address, or was offered it.
pub fn isOf(leases: *DhcpLeases, client: *const Client, ip: Ip4) bool {
    const row = leases.rowOf(ip) orelse return false;
    return row.client.eql(client) or (row.reservation != null and leases.isFor(row, client));
}

/// RELEASE: the lease ends, the address is remembered. Returns false if it was not this client's.
pub fn release(leases: *DhcpLeases, now_us: u64, client: *const Client, ip: Ip4) bool {
    const row = leases.rowOf(ip) orelse return false;
    if (leases.stateOf(now_us, row) != .bound) return false;
    if (!row.client.eql(client)) return false;
    leases.put(row, row.client, .free, now_us);
    row.recorded_until_us = 0;
    leases.change(row);
    assert(leases.changed_count > 0);
    return true;
}

/// DECLINE: the client found the address in use. Returns false if it was not this client's.
pub fn decline(leases: *DhcpLeases, now_us: u64, client: *const Client, ip: Ip4) bool {
    const row = leases.rowOf(ip) orelse return false;
    const state = leases.stateOf(now_us, row);
    if (state != .bound and state != .offered) return false;
    if (!row.client.eql(client)) return false;
    assert(row.state != .own);
    leases.put(row, .nobody, .declined, now_us + decline_hold_us);
    leases.change(row);
    assert(leases.changed_count > 0);
    return true;
}

pub fn isOffered(leases: *DhcpLeases, now_us: u64, ip: Ip4) bool {
    const row = leases.rowOf(ip) orelse return false;
    return leases.stateOf(now_us, row) == .offered;
}

/// Another machine has an address that a client was offered: it is avoided like one that its client
/// declines. A lease stays: whoever forges the answer would end it. Returns false if it is no
/// offered address, or the client's own.
pub fn findInUse(leases: *DhcpLeases, now_us: u64, ip: Ip4, holder: Mac) bool {
    const row = leases.rowOf(ip) orelse return false;
    if (leases.stateOf(now_us, row) != .offered) return false;
    if (row.client.mac.eql(holder)) return false;
    leases.put(row, .nobody, .declined, now_us + decline_hold_us);
    leases.change(row);
    assert(leases.changed_count > 0);
    return true;
}

/// The client took another server's offer: ours is released at once.
pub fn dropOffer(leases: *DhcpLeases, now_us: u64, client: *const Client) void {
    var at = leases.by_client.first(keyOf(client));
    while (at) |index| {
        at = leases.by_client.next(index);
        const row = &leases.rows[index];
        if (row.state != .offered or !row.client.eql(client)) continue;
        leases.put(row, row.client, .free, now_us);
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
    var first: ?u32 = null;
    var rows: ReservedRows = .of(leases, client);
    while (rows.next()) |index| {
        const number = leases.rows[index].reservation.?;
        if (first == null or number < first.?) first = number;
    }
    return leases.network.reservations[first orelse return null].host_name;
}

/// Returns the new state of an address whose record on disk is outdated; null when there is none
/// left.
pub fn takeChange(leases: *DhcpLeases, now_us: u64) ?Record {
    if (leases.changed_count == 0) return null;
    assert(leases.changed_count <= leases.rows.len);
    const row = &leases.rows[leases.changed_rows.takeFirst().?];
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
        const left_us = @min(record.remaining_us, decline_hold_us);
        leases.put(row, .nobody, .declined, now_us + left_us);
        return true;
    }
    if (!record.client.mac.isDevice()) return false;
    var client = record.client;
    client.by = leases.network.identify_by;
    var at = leases.by_client.first(keyOf(&client));
    while (at) |index| : (at = leases.by_client.next(index))
        if (leases.rows[index].client.eql(&client)) return false;
    const longest_s = @max(leases.network.lease_time_max_s, leases.network.lease_time_s);
    const remaining_us = @min(record.remaining_us, @as(u64, longest_s) * std.time.us_per_s);
    assert(row.state == .free);
    const is_bound = record.state == .bound and remaining_us > 0;
    leases.put(row, client, if (is_bound) .bound else .free, now_us + remaining_us);
    row.recorded_until_us = if (is_bound) row.until_us else 0;
    return true;
}

fn recordOf(row: *const Row, now_us: u64) Record {
    return switch (row.state) {
        .bound => .{
            .ip = row.ip,
            .client = row.client,
            .state = .bound,
            .remaining_us = @max(row.until_us, row.recorded_until_us) -| now_us,
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
    const index: u32 = @intCast(row - leases.rows.ptr);
    if (leases.changed_rows.isSet(index)) return;
    leases.changed_rows.set(index);
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
fn reservedFor(leases: *DhcpLeases, now_us: u64, client: *const Client) ?*Row {
    var first: ?u32 = null;
    var rows: ReservedRows = .of(leases, client);
    while (rows.next()) |index| first = @min(first orelse index, index);
    const row = &leases.rows[first orelse return null];
    return switch (leases.stateOf(now_us, row)) {
        .own, .declined => null,
        .free => row,
        .offered, .bound => if (row.client.eql(client)) row else null,
    };
}

/// Returns the state of a row, after what has expired by now.
fn stateOf(leases: *DhcpLeases, now_us: u64, row: *Row) State {
    switch (row.state) {
        .free, .own => {},
        .offered, .bound, .declined => if (row.until_us <= now_us)
            leases.put(row, row.client, .free, row.until_us),
    }
    return row.state;
}

fn expireDeclined(leases: *DhcpLeases, now_us: u64) void {
    if (now_us < leases.declined_until_us) return;
    leases.declined_until_us = never;
    assert(leases.rows.len > 0);
    for (leases.rows) |*row| {
        if (row.state != .declined or leases.stateOf(now_us, row) != .declined) continue;
        leases.declined_until_us = @min(leases.declined_until_us, row.until_us);
    }
}

/// In order of preference: the client's reserved address, the one that it has or had, the one that
/// it requests, the next one never used, the one that expired first.
fn pick(leases: *DhcpLeases, now_us: u64, client: *const Client, requested: ?Ip4) ?*Row {
    if (leases.reservedFor(now_us, client)) |row| return row;
    if (leases.formerOf(client)) |row| return row;
    if (requested) |ip| if (leases.rowOf(ip)) |row| if (row.isUnused()) return row;
    if (leases.rows.len == 0) return null;
    const start: u32 = @intCast(client.mac.toInt() % leases.rows.len);
    if (leases.unused_rows.firstFrom(start) orelse leases.unused_rows.first()) |index|
        return &leases.rows[index];
    const index = minimumOf(leases.untils_us);
    return if (leases.untils_us[index] <= now_us) &leases.rows[index] else null;
}

/// Returns the first address that this client has or had.
fn formerOf(leases: *DhcpLeases, client: *const Client) ?*Row {
    var first: ?u32 = null;
    var at = leases.by_client.first(keyOf(client));
    while (at) |index| : (at = leases.by_client.next(index)) {
        const row = &leases.rows[index];
        if (row.client.eql(client) and leases.isFor(row, client))
            first = @min(first orelse index, index);
    }
    return &leases.rows[first orelse return null];
}

/// Returns the index of the least value, of several the first. A column of 16,384 takes some µs.
fn minimumOf(values: []const u64) usize {
    var least: u64 = never;
    for (values) |value| least = @min(least, value);
    return std.mem.findScalar(u64, values, least).?;
}

test {
    _ = @import("leases_test.zig");
}
