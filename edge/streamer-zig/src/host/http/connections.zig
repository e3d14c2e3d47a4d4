//! The connections of the HTTP server: a fixed number of slots, whatever clients do. If all are
//! taken, the connection that has waited longest for its client's next request is closed; an answer
//! in progress never is. Buffers cost memory only once they have been used.

const std = @import("std");
const base = @import("base");
const http_request = @import("wire").http_request;
const http_response = @import("response.zig");
const PageWarmer = @import("../files/page_warmer.zig");
const tcp_delivery = @import("tcp_delivery.zig");
const assert = std.debug.assert;

pub const Connection = struct {
    fd: i32 = -1,
    /// `waiting`: the request at the front of the input is answered later. `draining`: everything
    /// is sent, but not everything is acknowledged.
    state: enum { free, reading, waiting, sending, draining } = .free,
    keep_alive: bool = false,
    /// Acknowledgements of what is sent now are stamped.
    stamped: bool = false,
    deadline_us: u64 = 0,
    /// No answer lasts longer than this, whatever its progress.
    answer_deadline_us: u64 = 0,
    /// When the latest bytes of a request arrived, in µs of the monotonic clock.
    arrived_us: u64 = 0,
    input_size: usize = 0,
    head_size: usize = 0,
    head_sent: usize = 0,
    body: http_response.Body = .none,
    /// Offset in the body of what is still to be sent.
    offset: u64 = 0,
    left: u64 = 0,
    body_size: u64 = 0,
    /// Bytes sent since the loop looked at this connection.
    turn_sent: u64 = 0,
    tag: http_response.Tag = .{},
    counters: tcp_delivery.Counters = .{},
    acknowledged_us: ?u64 = null,
    /// In bytes, at the last look.
    unacknowledged: u32 = 0,
    /// A thread reads what is to be sent next, or writes what it promises.
    awaits_disk: bool = false,
    /// The answer promises what the journal was given up to this number.
    awaited_record: ?u64 = null,
    /// Offset in the file up to which a thread has read for this answer.
    warm_to: u64 = 0,
    /// May still be with a thread on behalf of an earlier answer.
    task: PageWarmer.Task = .{},
    buffers: *Buffers,
};

pub const Buffers = struct {
    input: [http_request.request_size_max]u8,
    head: [http_response.head_size_max]u8,
    text: [http_response.text_size_max]u8,
};

pub const Connections = @This();

all: []Connection,
/// The client of each slot; no address for a free one. Kept apart because each new connection
/// looks at all of them.
peers: []base.Ip4,
buffers: []align(std.heap.page_size_min) u8,

const per_address_max = 256;

pub const InitError = error{OutOfMemory};

pub fn init(gpa: std.mem.Allocator, count: u16) InitError!Connections {
    assert(count > 0);
    const all = try gpa.alloc(Connection, count);
    errdefer gpa.free(all);
    const peers = try gpa.alloc(base.Ip4, count);
    errdefer gpa.free(peers);
    @memset(peers, .zero);
    // Not from an allocator, which would touch every page.
    const bytes = std.posix.mmap(
        null,
        @as(usize, count) * @sizeOf(Buffers),
        .{ .READ = true, .WRITE = true },
        .{ .TYPE = .PRIVATE, .ANONYMOUS = true },
        -1,
        0,
    ) catch return error.OutOfMemory;
    const buffers = std.mem.bytesAsSlice(Buffers, bytes);
    for (all, buffers) |*connection, *own| connection.* = .{ .buffers = own };
    return .{ .all = all, .peers = peers, .buffers = bytes };
}

pub fn deinit(connections: *Connections, gpa: std.mem.Allocator) void {
    std.posix.munmap(connections.buffers);
    gpa.free(connections.peers);
    gpa.free(connections.all);
    connections.* = undefined;
}

pub const Place = union(enum) {
    free: usize,
    /// Valid after the connection was closed.
    waiting: usize,
    /// This address has as many connections as it may have, or every connection is busy.
    none,
};

pub fn placeFor(connections: *const Connections, peer: base.Ip4) Place {
    var free: ?usize = null;
    var of_peer: u32 = 0;
    for (connections.peers, 0..) |other, index| {
        if (other.eql(peer)) of_peer += 1;
        if (other.eql(.zero)) free = free orelse index;
    }
    if (of_peer >= per_address_max) return .none;
    if (free) |index| return .{ .free = index };
    return if (connections.longestWaiting()) |index| .{ .waiting = index } else .none;
}

fn longestWaiting(connections: *const Connections) ?usize {
    var longest: ?usize = null;
    for (connections.all, 0..) |*connection, index| {
        if (connection.state != .reading) continue;
        const best = longest orelse index;
        // All of them may have waited equally long.
        if (connection.deadline_us <= connections.all[best].deadline_us) longest = index;
    }
    return longest;
}

pub fn indexOf(connections: *const Connections, connection: *const Connection) usize {
    return connection - connections.all.ptr;
}
