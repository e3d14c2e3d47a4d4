//! The fake network and clock: what is under way, in the order in which it arrives. Loss, delay, duplicates, reordering,
//! damage and partitions come from one random source; the same seed gives the same order for ever.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

pub const Network = @This();

pub const datagram_size_max = 1500;
/// More under way is a storm, and a mistake of some machine.
pub const datagrams_max = 200_000;

gpa: std.mem.Allocator,
prng: *base.Prng,
faults: Faults,
is_partitioned: bool = false,
now_us: u64 = 0,
serial: u64 = 0,
queue: std.ArrayList(Entry) = .empty,
buffers: std.ArrayList(*Datagram) = .empty,
free_buffers: std.ArrayList(u32) = .empty,
/// Order and content of everything that arrived.
hash: std.hash.Wyhash = .init(0),
sent: u64 = 0,
arrived: u64 = 0,

pub const Faults = struct {
    loss_percent: u8 = 0,
    duplicate_percent: u8 = 0,
    /// Damaged on the way: the UDP checksum finds it, so it is lost, and somebody else's garbage arrives instead.
    corrupt_percent: u8 = 0,
    delay_us_min: u64 = 50,
    delay_us_max: u64 = 50,

    pub const none: Faults = .{ .delay_us_min = 50, .delay_us_max = 400 };
};

pub const Datagram = struct {
    from: Endpoint,
    to: Endpoint,
    size: u16,
    bytes: [datagram_size_max]u8,

    pub fn payload(datagram: *const Datagram) []const u8 {
        return datagram.bytes[0..datagram.size];
    }
};

/// What arrives. Everything but datagrams is safe from faults: it is the world's own, or a connection's.
pub const Event = union(enum) {
    datagram: Datagram,
    connection: Connection,
    fault: Fault,
};

/// A piece of a fake TCP connection. Pieces of one opening arrive in order.
pub const Connection = struct {
    device: u16,
    /// Counts the device's openings; pieces of an earlier one are dropped.
    opening: u32,
    what: union(enum) {
        request,
        /// Bytes `first` to `end` of the answer.
        answer: struct { first: u64, end: u64 },
        closed,
    },
};

pub const Fault = union(enum) {
    edge_crash,
    partition: bool,
    next_version,
    thief,
    power_on: u16,
    heal,
};

const Entry = struct {
    at_us: u64,
    serial: u64,
    what: union(enum) { datagram: u32, connection: Connection, fault: Fault },

    fn before(a: *const Entry, b: *const Entry) bool {
        if (a.at_us != b.at_us) return a.at_us < b.at_us;
        return a.serial < b.serial;
    }
};

pub fn deinit(network: *Network) void {
    for (network.buffers.items) |buffer| network.gpa.destroy(buffer);
    network.buffers.deinit(network.gpa);
    network.free_buffers.deinit(network.gpa);
    network.queue.deinit(network.gpa);
}

pub fn send(network: *Network, from: Endpoint, to: Endpoint, bytes: []const u8) error{OutOfMemory}!void {
    const faults = &network.faults;
    network.sent += 1;
    if (network.is_partitioned) return;
    if (network.prng.chance(faults.loss_percent, 100)) return;
    const copies: u8 = if (network.prng.chance(faults.duplicate_percent, 100)) 2 else 1;
    for (0..copies) |_| {
        const delay_us = network.prng.between(faults.delay_us_min, faults.delay_us_max);
        if (network.prng.chance(faults.corrupt_percent, 100)) continue;
        try network.place(delay_us, from, to, bytes);
    }
}

/// Past all faults; for what an attacker sends.
pub fn place(network: *Network, delay_us: u64, from: Endpoint, to: Endpoint, bytes: []const u8) error{OutOfMemory}!void {
    assert(bytes.len <= datagram_size_max);
    assert(network.queue.items.len < datagrams_max);
    const index: u32 = network.free_buffers.pop() orelse fresh: {
        const buffer = try network.gpa.create(Datagram);
        try network.buffers.append(network.gpa, buffer);
        break :fresh @intCast(network.buffers.items.len - 1);
    };
    const datagram = network.buffers.items[index];
    datagram.from = from;
    datagram.to = to;
    datagram.size = @intCast(bytes.len);
    @memcpy(datagram.bytes[0..bytes.len], bytes);
    try network.push(network.now_us + delay_us, .{ .datagram = index });
}

pub fn connect(network: *Network, delay_us: u64, connection: Connection) error{OutOfMemory}!void {
    try network.push(network.now_us + delay_us, .{ .connection = connection });
}

pub fn schedule(network: *Network, at_us: u64, fault: Fault) error{OutOfMemory}!void {
    try network.push(at_us, .{ .fault = fault });
}

pub fn nextAt(network: *const Network) ?u64 {
    return if (network.queue.items.len == 0) null else network.queue.items[0].at_us;
}

/// The next event that is due at `until_us` or before; the clock moves to it.
pub fn next(network: *Network, until_us: u64) error{OutOfMemory}!?Event {
    if (network.queue.items.len == 0 or network.queue.items[0].at_us > until_us) return null;
    const entry = network.pop();
    network.now_us = @max(network.now_us, entry.at_us);
    network.note(std.mem.asBytes(&network.now_us));
    network.arrived += 1;
    switch (entry.what) {
        .datagram => |index| {
            const datagram = network.buffers.items[index].*;
            try network.free_buffers.append(network.gpa, index);
            network.note(&.{1});
            network.note(datagram.payload());
            network.note(std.mem.asBytes(&datagram.to.toInt()));
            return .{ .datagram = datagram };
        },
        .connection => |connection| {
            network.note(&.{2});
            network.note(std.mem.asBytes(&connection.device));
            return .{ .connection = connection };
        },
        .fault => |fault| {
            network.note(@tagName(fault));
            return .{ .fault = fault };
        },
    }
}

/// Adds to the hash that two runs of one seed must share.
pub fn note(network: *Network, bytes: []const u8) void {
    network.hash.update(bytes);
}

fn push(network: *Network, at_us: u64, what: @FieldType(Entry, "what")) error{OutOfMemory}!void {
    network.serial += 1;
    try network.queue.append(network.gpa, .{ .at_us = at_us, .serial = network.serial, .what = what });
    const items = network.queue.items;
    var child = items.len - 1;
    while (child > 0) {
        const parent = (child - 1) / 2;
        if (!items[child].before(&items[parent])) break;
        std.mem.swap(Entry, &items[child], &items[parent]);
        child = parent;
    }
}

fn pop(network: *Network) Entry {
    const items = network.queue.items;
    const first = items[0];
    items[0] = items[items.len - 1];
    network.queue.items.len -= 1;
    const rest = network.queue.items;
    var parent: usize = 0;
    while (true) {
        var least = parent;
        for ([_]usize{ 2 * parent + 1, 2 * parent + 2 }) |child| {
            if (child < rest.len and rest[child].before(&rest[least])) least = child;
        }
        if (least == parent) return first;
        std.mem.swap(Entry, &rest[parent], &rest[least]);
        parent = least;
    }
}

test "what is sent later with less delay arrives first, and equal times keep their order" {
    var prng: base.Prng = .init(1);
    var network: Network = .{ .gpa = std.testing.allocator, .prng = &prng, .faults = .{} };
    defer network.deinit();
    const here: Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 1 };
    try network.place(30, here, here, "c");
    try network.place(10, here, here, "a");
    try network.place(10, here, here, "b");
    for ("abc") |expected| {
        const event = (try network.next(100)).?;
        try std.testing.expectEqual(expected, event.datagram.bytes[0]);
    }
    try std.testing.expectEqual(30, network.now_us);
    try std.testing.expectEqual(null, try network.next(100));
}
