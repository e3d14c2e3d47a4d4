//! Read requests whose first packet is not answered yet. They hold nothing but this state: no file,
//! no retransmission timer. They stand in a ring, so that a flood of requests from spoofed
//! addresses evicts only the oldest of them, never a transfer, and each stays for as long as the
//! ring takes to fill. Fixed size.

const std = @import("std");
const base = @import("base");
const tftp = @import("wire").tftp;
const BootHandle = @import("../boot/handle.zig");
const Transfer = @import("event.zig").Transfer;
const Endpoint = base.Endpoint;
const assert = std.debug.assert;

pub const TftpRequests = @This();

/// Longer names are not published.
pub const name_size_max = 128;
/// A peer that has not answered by then is forgotten; its next request starts over.
pub const hold_us = 10 * std.time.us_per_s;

pub const Pending = struct {
    is_taken: bool = false,
    peer: Endpoint = undefined,
    handle: ?BootHandle = null,
    /// As requested.
    options: tftp.Options = .{},
    /// As reported to the peer.
    file_size: u64 = 0,
    requested_at_us: u64 = 0,
    /// The same request arrived again: its answer is no RTT sample.
    is_retransmitted: bool = false,
    name_size: u8 = 0,
    name_buffer: [name_size_max]u8 = undefined,

    pub fn name(pending: *const Pending) []const u8 {
        return pending.name_buffer[0..pending.name_size];
    }

    /// A peer without an answer retransmits its request from the same port.
    pub fn isRetransmission(
        pending: *const Pending,
        transfer: *const Transfer,
        requested_name: []const u8,
        options: *const tftp.Options,
    ) bool {
        if (!std.mem.eql(u8, pending.name(), requested_name)) return false;
        if (!std.meta.eql(pending.handle, transfer.handle)) return false;
        if (pending.file_size != transfer.file.size) return false;
        return std.meta.eql(pending.options, options.*);
    }
};

slots: []Pending,
/// The source of each slot, as `TftpSources` numbers them.
sources: []u16,
index: base.EndpointIndex,
/// The next slot to fill.
next: u32 = 0,
/// No slot before this one, in the ring's order, is taken.
oldest: u32 = 0,
count: u32 = 0,

pub fn init(gpa: std.mem.Allocator, capacity: u32, seed: u64) error{OutOfMemory}!TftpRequests {
    const slots = try base.allocZeroed(gpa, Pending, .{ .is_taken = false }, capacity);
    errdefer base.freeZeroed(gpa, Pending, slots);
    const sources = try base.allocZeroed(gpa, u16, 0, capacity);
    errdefer base.freeZeroed(gpa, u16, sources);
    return .{ .slots = slots, .sources = sources, .index = try .init(gpa, capacity, seed) };
}

pub fn deinit(requests: *TftpRequests, gpa: std.mem.Allocator) void {
    requests.index.deinit(gpa);
    base.freeZeroed(gpa, u16, requests.sources);
    base.freeZeroed(gpa, Pending, requests.slots);
    requests.* = undefined;
}

pub fn find(requests: *TftpRequests, peer: Endpoint) ?*Pending {
    assert(requests.count <= requests.slots.len);
    return &requests.slots[requests.index.get(peer) orelse return null];
}

/// Returns the request that the next `add` would evict.
pub fn nextVictim(requests: *TftpRequests) ?*Pending {
    const slot = &requests.slots[requests.next];
    return if (slot.is_taken) slot else null;
}

/// Returns the oldest request of one source.
pub fn oldestOf(requests: *TftpRequests, source: u16) ?*Pending {
    const capacity: u32 = @intCast(requests.slots.len);
    for ([_][2]u32{ .{ requests.oldest, capacity }, .{ 0, requests.oldest } }) |part| {
        var from: usize = part[0];
        while (std.mem.findScalarPos(u16, requests.sources[0..part[1]], from, source)) |at| {
            if (requests.slots[at].is_taken) return &requests.slots[at];
            from = at + 1;
        }
    }
    return null;
}

/// The next victim must have been removed, and the peer must have no entry.
pub fn add(requests: *TftpRequests, pending: Pending, source: u16) void {
    assert(requests.count < requests.slots.len);
    assert(!requests.slots[requests.next].is_taken);
    assert(requests.nextVictim() == null);
    if (requests.count == 0) requests.oldest = requests.next;
    requests.slots[requests.next] = pending;
    requests.slots[requests.next].is_taken = true;
    requests.sources[requests.next] = source;
    requests.index.put(pending.peer, @intCast(requests.next));
    requests.count += 1;
    requests.next = requests.after(requests.next);
}

/// Removes a request and returns its source.
pub fn remove(requests: *TftpRequests, pending: *Pending) u16 {
    assert(requests.count > 0);
    assert(pending.is_taken);
    const at: u32 = @intCast(pending - requests.slots.ptr);
    requests.index.remove(pending.peer);
    pending.is_taken = false;
    requests.count -= 1;
    if (requests.count > 0) while (!requests.slots[requests.oldest].is_taken) {
        requests.oldest = requests.after(requests.oldest);
    };
    assert(requests.count < requests.slots.len);
    return requests.sources[at];
}

/// Returns the oldest request; null: there is none.
pub fn first(requests: *TftpRequests) ?*Pending {
    return if (requests.count > 0) &requests.slots[requests.oldest] else null;
}

pub fn deadlineUs(requests: *const TftpRequests) ?u64 {
    if (requests.count == 0) return null;
    return requests.slots[requests.oldest].requested_at_us + hold_us;
}

fn after(requests: *const TftpRequests, at: u32) u32 {
    return if (at + 1 == requests.slots.len) 0 else at + 1;
}
