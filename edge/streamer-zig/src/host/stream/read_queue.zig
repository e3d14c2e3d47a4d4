//! The READs of the stream that wait: to be sent in their device's turn, or for a disk. Every
//! device has its own queue, and the queues take turns: a device that requests everything at once
//! does not delay one that requests little. Fixed capacity; pure: no clock, no system call.
//!
//! Sending is shared by bytes (deficit round robin): in each round a device may send
//! `quantum_size`; a read is sent whole, and its excess is subtracted in the following rounds.
//! Waiting for disks is shared by reads.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const assert = std.debug.assert;

const ReadRequest = core.stream.Server.ReadRequest;

pub const Options = struct {
    /// Slots for sessions.
    flows: u16 = 1024,
    slots: u16 = 4096,
    /// Per device: everything that may be in flight, in reads of 4 KiB.
    slots_each: u16 = 256,
    /// Per device: how many reads are at the disks at a time.
    at_disks_each: u16 = 4,
};

/// Bytes that one device may send before others get their turn; 0.15 ms at 7 Gb/s.
const quantum_size = 128 << 10;
/// Bytes after which the packet loop looks at its other sockets; 2.5 ms at 7 Gb/s.
const turn_size = 2 << 20;

comptime {
    assert(wire.read_size_max <= turn_size);
}

pub const Arrival = @import("agent").stream.Arrival;

pub const Slot = struct {
    state: State = .free,
    flow: u16 = 0,
    /// The next slot of the device, or of the free ones, behind this one.
    next: u16 = none,
    /// How often it has been at the disk.
    tries: u8 = 0,
    /// Fragments that were sent.
    sent: u16 = 0,
    /// Since when its bytes are in memory; null before.
    in_hand_us: ?u64 = null,
    read: ReadRequest = undefined,
    ranges: [4 * wire.ranges_max]u8 = undefined,
    arrival: Arrival = undefined,
    /// The next parked slot.
    parked_next: u16 = none,

    /// `parked`: a thread writes to its layer.
    pub const State = enum { free, ready, cold, at_disk, parked };
};

const none = std.math.maxInt(u16);

const Flow = struct {
    first: u16 = none,
    last: u16 = none,
    count: u16 = 0,
    ready: u16 = 0,
    cold: u16 = 0,
    at_disk: u16 = 0,
    /// Bytes that it may send in its round; negative if too much was sent.
    credit: i64 = quantum_size,
    round: u64 = 0,
    links: [2]u16 = @splat(none),
    is_in_line: [2]bool = @splat(false),
};

/// Devices that take turns.
const Line = struct {
    kind: enum(u1) { ready, cold },
    first: u16 = none,
    last: u16 = none,
    count: u16 = 0,
};

pub const Counters = struct {
    /// Duplicates of a waiting READ: answered once.
    joined: u64 = 0,
    /// The queue was full; the device retransmits.
    full: u64 = 0,
};

pub const ReadQueue = @This();

options: Options,
slots: []Slot,
flows: []Flow,
first_free: u16 = none,
/// Slots from here on were never used.
used_count: u16 = 0,
count: u16 = 0,
ready_count: u16 = 0,
parked_first: u16 = none,
ready: Line = .{ .kind = .ready },
cold: Line = .{ .kind = .cold },
round: u64 = 0,
turn_left: i64 = turn_size,
counters: Counters = .{},

pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!ReadQueue {
    assert(options.slots < none and options.flows < none and options.slots_each > 0);
    const slots = try base.allocZeroed(gpa, Slot, .{ .state = .free }, options.slots);
    errdefer base.freeZeroed(gpa, Slot, slots);
    const flows = try gpa.alloc(Flow, options.flows);
    @memset(flows, .{});
    return .{ .options = options, .slots = slots, .flows = flows };
}

pub fn deinit(queue: *ReadQueue, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, Slot, queue.slots);
    gpa.free(queue.flows);
    queue.* = undefined;
}

/// Called after the packet loop has looked at its sockets.
pub fn beginTurn(queue: *ReadQueue) void {
    queue.turn_left = turn_size;
    queue.round += 1;
}

/// Returns whether a READ of this device that has just arrived may be answered before those
/// that wait.
pub fn mayGoAtOnce(queue: *ReadQueue, flow_index: u16) bool {
    const flow = queue.refreshed(flow_index);
    return flow.ready == 0 and flow.credit > 0 and queue.turn_left > 0;
}

/// Bytes have been sent to this device.
pub fn charge(queue: *ReadQueue, flow_index: u16, size: u64) void {
    queue.refreshed(flow_index).credit -= @intCast(size);
    queue.turn_left -= @intCast(size);
}

/// Returns whether the same READ already waits.
pub fn joins(queue: *ReadQueue, flow_index: u16, read: *const ReadRequest) bool {
    var at = queue.flows[flow_index].first;
    while (at != none) : (at = queue.slots[at].next) {
        const waiting = &queue.slots[at].read;
        if (waiting.request_id != read.request_id or waiting.session_id != read.session_id)
            continue;
        // The path MTU has shrunk: what waits would not get through.
        if (waiting.fragment_size != read.fragment_size) continue;
        queue.counters.joined += 1;
        return true;
    }
    return false;
}

/// Keeps a copy; returns null if the queue is full. `cold`: it has to wait for its disk.
pub fn add(
    queue: *ReadQueue,
    flow_index: u16,
    read: *const ReadRequest,
    arrival: Arrival,
    state: enum { ready, cold },
) ?*Slot {
    const flow = &queue.flows[flow_index];
    if (flow.count == queue.options.slots_each or
        (!queue.hasFreeSlot() and !queue.makeRoomFor(flow)))
    {
        queue.counters.full += 1;
        return null;
    }
    const index = queue.takeFreeSlot();
    const slot = &queue.slots[index];
    assert(slot.state == .free);
    slot.state = if (state == .ready) .ready else .cold;
    slot.flow = flow_index;
    slot.next = none;
    slot.tries = 0;
    slot.in_hand_us = null;
    slot.sent = 0;
    slot.read = read.*;
    slot.arrival = arrival;
    @memcpy(slot.ranges[0..read.ranges.bytes.len], read.ranges.bytes);
    slot.read.ranges = .{ .bytes = slot.ranges[0..read.ranges.bytes.len] };
    if (flow.last == none) flow.first = index else queue.slots[flow.last].next = index;
    flow.last = index;
    flow.count += 1;
    queue.count += 1;
    if (slot.state == .ready) flow.ready += 1 else flow.cold += 1;
    queue.ready_count += @intFromBool(slot.state == .ready);
    queue.enter(if (slot.state == .ready) &queue.ready else &queue.cold, flow_index);
    return slot;
}

/// Returns what is to be sent next; its slot stays taken until `end` or `toCold`. Null: nothing
/// waits, or the turn's bytes are sent.
pub fn nextReady(queue: *ReadQueue) ?*Slot {
    if (queue.turn_left <= 0) return null;
    var passed: u16 = 0;
    while (queue.ready.first != none) {
        const index = queue.ready.first;
        const flow = queue.refreshed(index);
        if (flow.ready == 0) {
            queue.leave(&queue.ready);
            continue;
        }
        if (flow.credit > 0) return queue.firstOf(flow, .ready);
        queue.rotate(&queue.ready);
        passed += 1;
        // Nobody has credit left: the next round begins.
        if (passed >= queue.ready.count) {
            queue.round += 1;
            passed = 0;
        }
    }
    return null;
}

/// Returns what goes to its disk next. Null: nothing waits, or each device has enough reads
/// there.
pub fn nextCold(queue: *ReadQueue) ?*Slot {
    var passed: u16 = 0;
    while (passed < queue.cold.count) {
        const flow = &queue.flows[queue.cold.first];
        if (flow.cold == 0) {
            queue.leave(&queue.cold);
            continue;
        }
        queue.rotate(&queue.cold);
        passed += 1;
        if (flow.at_disk == queue.options.at_disks_each) continue;
        const slot = queue.firstOf(flow, .cold);
        slot.state = .at_disk;
        slot.tries +|= 1;
        flow.cold -= 1;
        flow.at_disk += 1;
        return slot;
    }
    return null;
}

/// The read has to wait for its disk: for the first time, or again.
pub fn toCold(queue: *ReadQueue, slot: *Slot) void {
    const flow = &queue.flows[slot.flow];
    switch (slot.state) {
        .ready => flow.ready -= 1,
        .at_disk => flow.at_disk -= 1,
        .free, .cold, .parked => unreachable,
    }
    queue.ready_count -= @intFromBool(slot.state == .ready);
    slot.state = .cold;
    flow.cold += 1;
    queue.enter(&queue.cold, slot.flow);
}

/// The read waits for the writes of its own device.
pub fn park(queue: *ReadQueue, slot: *Slot) void {
    const flow = &queue.flows[slot.flow];
    switch (slot.state) {
        .ready => flow.ready -= 1,
        .at_disk => flow.at_disk -= 1,
        .free, .cold, .parked => unreachable,
    }
    queue.ready_count -= @intFromBool(slot.state == .ready);
    slot.state = .parked;
    slot.parked_next = queue.parked_first;
    queue.parked_first = @intCast(slot - queue.slots.ptr);
}

/// Each parked read is tried again, and parked again if its layer is still written to.
pub fn unpark(queue: *ReadQueue) void {
    while (queue.parked_first != none) {
        const slot = &queue.slots[queue.parked_first];
        assert(slot.state == .parked);
        queue.parked_first = slot.parked_next;
        slot.state = .ready;
        queue.flows[slot.flow].ready += 1;
        queue.ready_count += 1;
        queue.enter(&queue.ready, slot.flow);
    }
}

/// The read is answered, or will not be.
pub fn end(queue: *ReadQueue, slot: *Slot) void {
    const flow = &queue.flows[slot.flow];
    switch (slot.state) {
        .ready => flow.ready -= 1,
        .cold => flow.cold -= 1,
        .at_disk => flow.at_disk -= 1,
        .free, .parked => unreachable,
    }
    queue.ready_count -= @intFromBool(slot.state == .ready);
    const index: u16 = @intCast(slot - queue.slots.ptr);
    var before: u16 = none;
    var at = flow.first;
    while (at != index) : (at = queue.slots[at].next) before = at;
    if (before == none) flow.first = slot.next else queue.slots[before].next = slot.next;
    if (flow.last == index) flow.last = before;
    flow.count -= 1;
    queue.count -= 1;
    slot.state = .free;
    slot.next = queue.first_free;
    queue.first_free = index;
}

fn hasFreeSlot(queue: *const ReadQueue) bool {
    return queue.first_free != none or queue.used_count < queue.slots.len;
}

fn takeFreeSlot(queue: *ReadQueue) u16 {
    assert(queue.hasFreeSlot());
    const index = queue.first_free;
    if (index == none) {
        defer queue.used_count += 1;
        return queue.used_count;
    }
    queue.first_free = queue.slots[index].next;
    return index;
}

/// The device with the most reads drops its latest one, if it has more than the requesting
/// device.
fn makeRoomFor(queue: *ReadQueue, flow: *const Flow) bool {
    var most = &queue.flows[0];
    for (queue.flows) |*other| if (other.count > most.count) {
        most = other;
    };
    if (most.count <= flow.count + 1) return false;
    var latest: ?*Slot = null;
    var at = most.first;
    while (at != none) : (at = queue.slots[at].next) {
        const slot = &queue.slots[at];
        if (slot.state != .at_disk and slot.state != .parked) latest = slot;
    }
    queue.end(latest orelse return false);
    queue.counters.full += 1;
    return true;
}

fn refreshed(queue: *ReadQueue, flow_index: u16) *Flow {
    const flow = &queue.flows[flow_index];
    // Number of rounds that make up for a read of the greatest size.
    const rounds: i64 =
        @intCast(@min(queue.round - flow.round, wire.read_size_max / quantum_size + 1));
    flow.credit = @min(quantum_size, flow.credit + rounds * quantum_size);
    flow.round = queue.round;
    return flow;
}

fn firstOf(queue: *ReadQueue, flow: *const Flow, state: Slot.State) *Slot {
    var at = flow.first;
    while (queue.slots[at].state != state) at = queue.slots[at].next;
    return &queue.slots[at];
}

fn enter(queue: *ReadQueue, line: *Line, flow_index: u16) void {
    const flow = &queue.flows[flow_index];
    const kind = @backingInt(line.kind);
    if (flow.is_in_line[kind]) return;
    flow.is_in_line[kind] = true;
    flow.links[kind] = none;
    if (line.last == none)
        line.first = flow_index
    else
        queue.flows[line.last].links[kind] = flow_index;
    line.last = flow_index;
    line.count += 1;
}

/// The first device has nothing in this queue any more.
fn leave(queue: *ReadQueue, line: *Line) void {
    const flow = &queue.flows[line.first];
    const kind = @backingInt(line.kind);
    line.first = flow.links[kind];
    if (line.first == none) line.last = none;
    flow.is_in_line[kind] = false;
    line.count -= 1;
}

fn rotate(queue: *ReadQueue, line: *Line) void {
    const index = line.first;
    queue.leave(line);
    queue.enter(line, index);
}

const testing = std.testing;

fn testRead(session_id: u64, request_id: u32, length: u32) ReadRequest {
    return .{
        .boot_id = .zero,
        .version_id = .zero,
        .to = .{ .ip = .zero, .port = 0 },
        .session_id = session_id,
        .version = .v3,
        .request_id = request_id,
        .kind = .demand,
        .offset = 0,
        .length = length,
        .fragment_size = wire.fragment_size_ethernet,
        .overhead = wire.header_size + wire.tag_size,
        .write_cache = .device_ram,
        .ranges = .{},
        .first = false,
        .repeated = false,
        .bytes_out = length,
        .packets_out = wire.fragmentCount(length, wire.fragment_size_ethernet),
    };
}

const test_arrival: Arrival = .{ .size = 30, .at_us = 0 };

fn send(queue: *ReadQueue) ?*Slot {
    const slot = queue.nextReady() orelse return null;
    queue.charge(slot.flow, slot.read.bytes_out);
    queue.end(slot);
    return slot;
}

test "a device that requests much delays one that requests little by at most one quantum" {
    var queue: ReadQueue =
        try .init(testing.allocator, .{ .flows = 8, .slots = 64, .slots_each = 32 });
    defer queue.deinit(testing.allocator);
    for (0..32) |number|
        _ = queue.add(2, &testRead(2, @intCast(number), 32 << 10), test_arrival, .ready).?;
    _ = queue.add(5, &testRead(5, 1, 4096), test_arrival, .ready).?;
    var before: u64 = 0;
    while (send(&queue)) |slot| {
        if (slot.flow == 5) break;
        before += 32 << 10;
    } else return error.TestUnexpectedResult;
    try testing.expect(before <= quantum_size);
    // And no byte of the other is lost.
    queue.beginTurn();
    while (send(&queue)) |_| before += 32 << 10;
    try testing.expectEqual(32 * (32 << 10), before);
    try testing.expectEqual(0, queue.count);
}

test "a read larger than a quantum is sent whole and made up for" {
    var queue: ReadQueue =
        try .init(testing.allocator, .{ .flows = 4, .slots = 64, .slots_each = 32 });
    defer queue.deinit(testing.allocator);
    try testing.expect(queue.mayGoAtOnce(1));
    queue.charge(1, wire.read_size_max);
    try testing.expect(!queue.mayGoAtOnce(1));
    try testing.expect(queue.mayGoAtOnce(2));
    _ = queue.add(1, &testRead(1, 1, 4096), test_arrival, .ready).?;
    for (0..8) |number|
        _ = queue.add(2, &testRead(2, @intCast(number), 64 << 10), test_arrival, .ready).?;
    for (0..8) |_| try testing.expectEqual(2, send(&queue).?.flow);
    // Alone it does not wait for rounds that nobody else needs.
    try testing.expectEqual(1, send(&queue).?.flow);
}

test "after a turn's bytes the loop looks at its sockets" {
    var queue: ReadQueue =
        try .init(testing.allocator, .{ .flows = 4, .slots = 64, .slots_each = 32 });
    defer queue.deinit(testing.allocator);
    for (0..4) |number| _ =
        queue.add(1, &testRead(1, @intCast(number), wire.read_size_max), test_arrival, .ready).?;
    try testing.expect(send(&queue) != null and send(&queue) != null);
    try testing.expectEqual(null, send(&queue));
    try testing.expect(!queue.mayGoAtOnce(3));
    queue.beginTurn();
    try testing.expect(send(&queue) != null);
}

test "disks are shared among devices, whoever came first" {
    var queue: ReadQueue = try .init(
        testing.allocator,
        .{ .flows = 4, .slots = 64, .slots_each = 32, .at_disks_each = 2 },
    );
    defer queue.deinit(testing.allocator);
    for (0..9) |number|
        _ = queue.add(1, &testRead(1, @intCast(number), 4096), test_arrival, .cold).?;
    const late = queue.add(3, &testRead(3, 1, 4096), test_arrival, .ready).?;
    queue.toCold(late);
    const first = queue.nextCold().?;
    try testing.expectEqual(1, first.flow);
    try testing.expectEqual(3, queue.nextCold().?.flow);
    try testing.expectEqual(1, queue.nextCold().?.flow);
    // Two reads of one device are at the disks.
    try testing.expectEqual(null, queue.nextCold());
    queue.end(first);
    try testing.expectEqual(2, queue.nextCold().?.read.request_id);
}

test "a full queue drops a read of the device with the most, and a duplicate READ takes no slot" {
    var queue: ReadQueue =
        try .init(testing.allocator, .{ .flows = 4, .slots = 8, .slots_each = 7 });
    defer queue.deinit(testing.allocator);
    for (0..7) |number|
        _ = queue.add(0, &testRead(1, @intCast(number), 4096), test_arrival, .ready).?;
    try testing.expect(queue.joins(0, &testRead(1, 3, 4096)));
    // Another session may use the same numbers.
    try testing.expect(!queue.joins(0, &testRead(2, 3, 4096)));
    try testing.expectEqual(null, queue.add(0, &testRead(1, 7, 4096), test_arrival, .ready));
    for (0..4) |number|
        _ = queue.add(1, &testRead(3, @intCast(number), 4096), test_arrival, .ready).?;
    try testing.expectEqual(null, queue.add(1, &testRead(3, 4, 4096), test_arrival, .ready));
    // One over its own limit, three dropped, one for which nobody gives up a slot.
    try testing.expectEqual(Counters{ .joined = 1, .full = 5 }, queue.counters);
    try testing.expectEqual(8, queue.count);
    try testing.expect(queue.joins(0, &testRead(1, 0, 4096)));
    try testing.expect(!queue.joins(0, &testRead(1, 6, 4096)));
}

test "a read that its device's writes keep waiting lets others pass, and comes back" {
    var queue: ReadQueue =
        try .init(testing.allocator, .{ .flows = 4, .slots = 64, .slots_each = 32 });
    defer queue.deinit(testing.allocator);
    for (0..3) |number| _ =
        queue.add(1, &testRead(1, @intCast(number), 4096), test_arrival, .ready).?;
    const cold = queue.add(1, &testRead(1, 3, 4096), test_arrival, .cold).?;
    try testing.expectEqual(cold, queue.nextCold().?);
    queue.park(cold);
    queue.park(queue.nextReady().?);
    queue.park(queue.nextReady().?);
    _ = queue.add(2, &testRead(2, 9, 4096), test_arrival, .ready).?;
    try testing.expectEqual(2, queue.ready_count);
    // The device's own third read comes first, then the other device's.
    for ([_]u32{ 2, 9 }) |id| try testing.expectEqual(id, send(&queue).?.read.request_id);
    try testing.expectEqual(null, queue.nextReady());
    try testing.expect(queue.joins(1, &testRead(1, 0, 4096)));
    queue.unpark();
    try testing.expectEqual(3, queue.ready_count);
    for ([_]u32{ 0, 1, 3 }) |id| try testing.expectEqual(id, send(&queue).?.read.request_id);
    try testing.expectEqual(0, queue.count);
    try testing.expectEqual(0, queue.flows[1].at_disk);
}

test "the ranges of a READ are kept when its packet is gone" {
    var queue: ReadQueue = try .init(testing.allocator, .{ .flows = 1, .slots = 2 });
    defer queue.deinit(testing.allocator);
    var list: wire.RangeList = .{};
    try list.append(.{ .first_fragment = 2, .fragment_count = 3 });
    var read = testRead(1, 1, 32 << 10);
    read.ranges = list.view();
    _ = queue.add(0, &read, test_arrival, .ready).?;
    @memset(&list.buffer, 0xff);
    try testing.expectEqual(
        wire.Range{ .first_fragment = 2, .fragment_count = 3 },
        queue.nextReady().?.read.ranges.at(0),
    );
}
