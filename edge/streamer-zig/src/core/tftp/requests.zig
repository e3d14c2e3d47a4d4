//! Read requests whose first packet was not answered yet. Nothing of them is held but this: no
//! file, no timer that sends. They stand in a ring, so that a flood of requests under false
//! addresses only pushes out the oldest of them, never a transfer, and each stays for as long as
//! the ring takes to fill. Fixed size.

const std = @import("std");
const base = @import("base");
const tftp = @import("wire").tftp;
const BootHandle = @import("../boot/handle.zig").BootHandle;
const Transfer = @import("event.zig").Transfer;
const Endpoint = base.Endpoint;
const assert = std.debug.assert;

pub const TftpRequests = @This();

/// Longer names are not published.
pub const name_size_max = 128;
/// A peer that has not answered by then is forgotten; its own next request starts again.
pub const hold_us = 10 * std.time.us_per_s;

pub const Pending = struct {
    is_taken: bool = false,
    peer: Endpoint = undefined,
    handle: ?BootHandle = null,
    /// As asked.
    options: tftp.Options = .{},
    /// As it was told to the peer.
    file_size: u64 = 0,
    asked_at_us: u64 = 0,
    /// The same request came again: its answer measures no round trip.
    is_repeated: bool = false,
    name_size: u8 = 0,
    name_buffer: [name_size_max]u8 = undefined,

    pub fn name(pending: *const Pending) []const u8 {
        return pending.name_buffer[0..pending.name_size];
    }

    /// A peer that heard nothing sends its request again, from the same port.
    pub fn isRepeated(
        pending: *const Pending,
        transfer: *const Transfer,
        asked_name: []const u8,
        options: *const tftp.Options,
    ) bool {
        if (!std.mem.eql(u8, pending.name(), asked_name)) return false;
        if (!std.meta.eql(pending.handle, transfer.handle)) return false;
        if (pending.file_size != transfer.file.size) return false;
        return std.meta.eql(pending.options, options.*);
    }
};

places: []Pending,
/// Which source each place belongs to, as `TftpSources` numbers them.
sources: []u16,
index: base.EndpointIndex,
/// Where the next goes.
next: u32 = 0,
/// No place before this one, in the ring's order, is taken.
oldest: u32 = 0,
count: u32 = 0,

pub fn init(gpa: std.mem.Allocator, capacity: u32, seed: u64) error{OutOfMemory}!TftpRequests {
    const places = try gpa.alloc(Pending, capacity);
    errdefer gpa.free(places);
    const sources = try gpa.alloc(u16, capacity);
    errdefer gpa.free(sources);
    for (places) |*place| place.is_taken = false;
    @memset(sources, 0);
    return .{ .places = places, .sources = sources, .index = try .init(gpa, capacity, seed) };
}

pub fn deinit(requests: *TftpRequests, gpa: std.mem.Allocator) void {
    requests.index.deinit(gpa);
    gpa.free(requests.sources);
    gpa.free(requests.places);
    requests.* = undefined;
}

pub fn find(requests: *TftpRequests, peer: Endpoint) ?*Pending {
    return &requests.places[requests.index.get(peer) orelse return null];
}

/// What the next `add` would push out.
pub fn inTheWay(requests: *TftpRequests) ?*Pending {
    const place = &requests.places[requests.next];
    return if (place.is_taken) place else null;
}

/// The oldest of one source.
pub fn oldestOf(requests: *TftpRequests, source: u16) ?*Pending {
    const capacity: u32 = @intCast(requests.places.len);
    for ([_][2]u32{ .{ requests.oldest, capacity }, .{ 0, requests.oldest } }) |part| {
        var from: usize = part[0];
        while (std.mem.findScalarPos(u16, requests.sources[0..part[1]], from, source)) |at| {
            if (requests.places[at].is_taken) return &requests.places[at];
            from = at + 1;
        }
    }
    return null;
}

/// The place in the way must have been removed, and the peer must not be there.
pub fn add(requests: *TftpRequests, pending: Pending, source: u16) void {
    assert(requests.inTheWay() == null);
    if (requests.count == 0) requests.oldest = requests.next;
    requests.places[requests.next] = pending;
    requests.places[requests.next].is_taken = true;
    requests.sources[requests.next] = source;
    requests.index.put(pending.peer, @intCast(requests.next));
    requests.count += 1;
    requests.next = requests.after(requests.next);
}

/// Returns its source.
pub fn remove(requests: *TftpRequests, pending: *Pending) u16 {
    assert(pending.is_taken);
    const at: u32 = @intCast(pending - requests.places.ptr);
    requests.index.remove(pending.peer);
    pending.is_taken = false;
    requests.count -= 1;
    if (requests.count > 0) while (!requests.places[requests.oldest].is_taken) {
        requests.oldest = requests.after(requests.oldest);
    };
    return requests.sources[at];
}

/// The one that has waited for longest; null: there is none.
pub fn first(requests: *TftpRequests) ?*Pending {
    return if (requests.count > 0) &requests.places[requests.oldest] else null;
}

pub fn deadlineUs(requests: *const TftpRequests) ?u64 {
    if (requests.count == 0) return null;
    return requests.places[requests.oldest].asked_at_us + hold_us;
}

fn after(requests: *const TftpRequests, at: u32) u32 {
    return if (at + 1 == requests.places.len) 0 else at + 1;
}
