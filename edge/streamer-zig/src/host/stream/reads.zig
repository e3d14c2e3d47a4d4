//! Reads the bytes of READs. What is in memory and already verified is sent at once; threads read
//! everything else (`ReadWorkers.zig`), while the packet loop continues with other devices.
//! `ReadQueue.zig` decides whose turn it is.
//!
//! `port` is the `StreamPort`, or a `StreamShard` with its own reads. Its `sendRead` looks the
//! session up again: a device may have disappeared during the wait for a disk.
//!
//! The packet loop itself always reads what is in a write layer, at the moment of sending: a thread
//! has then only brought it into memory, so that a read contains every write that was acknowledged
//! before its answer. While a thread writes to a layer, reads of its device are parked.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const ReadQueue = @import("read_queue.zig");
const ReadWorkers = @import("read_workers.zig");
const PiecePacker = @import("piece_packer.zig");
const packing = @import("packing.zig");
const sys = @import("../sys.zig");
const version_disk = @import("version_disk.zig");
const write_caches = @import("agent").write_caches;
const UdpSocket = @import("../net/udp_socket.zig");
const assert = std.debug.assert;

const Arrival = ReadQueue.Arrival;
const ReadRequest = core.stream.Server.ReadRequest;
const Slot = ReadQueue.Slot;
const Task = ReadWorkers.Task;

/// How often a read of a write layer goes to the threads if it has more pieces than one task can
/// hold.
const tries_max = 8;

pub const Error = @import("agent").stream.ReadError;

pub const Figures = struct {
    /// Reads that waited for a disk, or for verification.
    cold: u64 = 0,
    /// How long these waited until their bytes were in memory.
    cold_us: u64 = 0,
    /// Reads whose devices were gone when it was their turn.
    gone: u64 = 0,
};

pub const StreamReads = @This();

queue: ReadQueue,
workers: *ReadWorkers,
/// The bytes of one READ.
buffer: []u8,
/// A packed answer; empty where nothing is packed.
answer: []u8,
/// Null: nothing is packed.
packer: ?*PiecePacker,
/// Back from the threads and not sent yet, oldest first.
done: std.Deque(*Task),
/// The socket's send buffer is full: nothing is sent until it has free space.
awaits_socket: bool = false,
figures: Figures = .{},

pub const InitError = ReadWorkers.InitError;
pub const Options =
    struct {
        queue: ReadQueue.Options = .{},
        workers: ReadWorkers.Options = .{},
        packer: ?*PiecePacker = null,
    };

pub fn init(gpa: std.mem.Allocator, options: Options) InitError!StreamReads {
    const buffer = try base.allocUntouched(gpa, u8, wire.read_size_max);
    errdefer base.freeUntouched(gpa, u8, buffer);
    const answer_size: usize = if (options.packer == null) 0 else wire.read_size_max;
    const answer = try base.allocUntouched(gpa, u8, answer_size);
    errdefer base.freeUntouched(gpa, u8, answer);
    var done: std.Deque(*Task) = try .initCapacity(gpa, options.workers.tasks);
    errdefer done.deinit(gpa);
    var queue: ReadQueue = try .init(gpa, options.queue);
    errdefer queue.deinit(gpa);
    const workers = try gpa.create(ReadWorkers);
    errdefer gpa.destroy(workers);
    workers.* = try .init(gpa, options.workers);
    return .{
        .queue = queue,
        .workers = workers,
        .buffer = buffer,
        .answer = answer,
        .packer = options.packer,
        .done = done,
    };
}

/// After its threads were started: waits for their reads in progress.
pub fn deinit(reads: *StreamReads, gpa: std.mem.Allocator) void {
    while (reads.done.popFront()) |task| reads.workers.release(task);
    reads.workers.deinit(gpa);
    gpa.destroy(reads.workers);
    reads.queue.deinit(gpa);
    reads.done.deinit(gpa);
    base.freeUntouched(gpa, u8, reads.buffer);
    base.freeUntouched(gpa, u8, reads.answer);
    reads.* = undefined;
}

/// Returns whether something can be sent without waiting.
pub fn hasWork(reads: *const StreamReads) bool {
    return !reads.awaits_socket and (reads.queue.ready_count > 0 or reads.done.len > 0);
}

/// In the order of `metrics_page.Unanswered`.
pub fn unanswered(reads: *const StreamReads) [3]u64 {
    const counters = &reads.queue.counters;
    return .{ counters.joined, counters.full, reads.figures.gone };
}

/// Returns whether the same READ waits for its turn or for a disk: one answer is enough.
pub fn isWaiting(reads: *StreamReads, read: *const ReadRequest) bool {
    return reads.queue.joins(flowOf(read), read);
}

/// Takes a READ that has just arrived.
pub fn take(
    reads: *StreamReads,
    port: anytype,
    socket: *UdpSocket,
    read: *const ReadRequest,
    arrival: Arrival,
) void {
    const flow = flowOf(read);
    const goes_at_once = !reads.awaits_socket and reads.queue.mayGoAtOnce(flow) and
        !isParked(port, read);
    var answered = read.*;
    const bytes: ?[]const u8 = if (goes_at_once)
        reads.answerNow(port, &answered) catch |err|
            return port.refuseRead(socket, read, err, arrival.at_us)
    else
        null;
    var sent: u16 = 0;
    const in_hand_us: ?u64 = if (bytes != null) sys.monotonicUs() else null;
    if (in_hand_us) |at_us| if (reads.send(port, socket, &answered, .{
        .bytes = bytes.?,
        .sent = &sent,
        .arrival = arrival,
        .in_hand_us = at_us,
        .is_begin = true,
        .is_cold = false,
    })) return;
    const is_cold = goes_at_once and bytes == null;
    const slot = reads.queue.add(flow, &answered, arrival, if (is_cold) .cold else .ready) orelse
        return port.onUnanswered(read, arrival);
    slot.sent = sent;
    slot.in_hand_us = in_hand_us;
    if (is_cold) reads.order(port, socket);
}

/// Threads have finished reads.
pub fn takeEnded(reads: *StreamReads) void {
    while (reads.workers.takeEnded()) |task| reads.done.pushBackAssumeCapacity(task);
}

/// Runs once per turn of the packet loop: sends what waits, up to one turn's share.
pub fn serve(reads: *StreamReads, port: anytype, socket: *UdpSocket) void {
    defer reads.queue.beginTurn();
    reads.awaits_socket = false;
    if (reads.queue.count == 0) return;
    reads.queue.unpark();
    // First what has come from disks, so that threads have buffers again.
    while (reads.done.front()) |task| {
        if (reads.queue.turn_left <= 0 or !reads.finish(port, socket, task)) break;
        _ = reads.done.popFront();
    }
    while (!reads.awaits_socket) {
        const slot = reads.queue.nextReady() orelse break;
        reads.serveSlot(port, socket, slot);
    }
    reads.order(port, socket);
}

fn serveSlot(reads: *StreamReads, port: anytype, socket: *UdpSocket, slot: *Slot) void {
    if (reads.isGone(port, slot)) return reads.queue.end(slot);
    if (isParked(port, &slot.read)) return reads.queue.park(slot);
    const before = slot.read.packed_bytes;
    const bytes = reads.answerNow(port, &slot.read) catch |err| {
        port.refuseRead(socket, &slot.read, err, sys.monotonicUs());
        return reads.queue.end(slot);
    };
    // Nothing of another answer fits what was sent.
    if (slot.read.packed_bytes != before) slot.sent = 0;
    const some = bytes orelse return reads.queue.toCold(slot);
    if (reads.send(port, socket, &slot.read, .ofSlot(slot, some))) reads.queue.end(slot);
}

/// Gives threads what waits for disks, as far as there are buffers.
fn order(reads: *StreamReads, port: anytype, socket: *UdpSocket) void {
    while (reads.workers.take()) |task| {
        const slot = reads.queue.nextCold() orelse return reads.workers.put(task);
        if (reads.isGone(port, slot)) {
            reads.queue.end(slot);
            reads.workers.put(task);
            continue;
        }
        if (isParked(port, &slot.read)) {
            reads.queue.park(slot);
            reads.workers.put(task);
            continue;
        }
        prepare(port, task, slot) catch |err| {
            port.refuseRead(socket, &slot.read, err, sys.monotonicUs());
            reads.queue.end(slot);
            reads.workers.put(task);
            continue;
        };
        reads.figures.cold += 1;
        reads.workers.order(task);
    }
}

/// Answers what a thread has read. Returns false if the send buffer is full and it has to be
/// tried again.
fn finish(reads: *StreamReads, port: anytype, socket: *UdpSocket, task: *Task) bool {
    const slot = task.slot;
    const read = &slot.read;
    if (reads.isGone(port, slot)) return reads.conclude(port, task, .over);
    if (port.diskOf(read.version_id)) |disk| if (task.result) |_| {
        for (task.parts.constSlice()) |*part|
            if (!part.is_own) disk.markChecked(part.offset, part.size);
    } else |_| {};
    if (task.layer) |layer| if (task.result == error.Lost) {
        layer.lose();
    };
    if (isParked(port, read)) return reads.conclude(port, task, .parked);
    if (read.packed_bytes != 0) slot.sent = 0;
    _ = slot.read.answerBy(0);
    const is_filled = bytesOf(port, task) catch |err| {
        port.refuseRead(socket, read, err, sys.monotonicUs());
        return reads.conclude(port, task, .over);
    };
    if (!is_filled) return reads.conclude(port, task, .again);
    return reads.send(port, socket, read, .ofSlot(slot, task.buffer)) and
        reads.conclude(port, task, .over);
}

/// Returns false if threads have more to read.
fn bytesOf(port: anytype, task: *Task) Error!bool {
    const layer = task.layer orelse {
        task.result catch return error.StoreError;
        return true;
    };
    const slot = task.slot;
    if (try fillNow(port, &slot.read, task.buffer)) return true;
    task.result catch return error.StoreError;
    if (task.parts.isFull() and slot.tries < tries_max) return false;
    // It has just been brought into memory; not every file system can confirm that.
    var ranges: ByteRanges = .{ .read = &slot.read };
    while (ranges.next()) |range| {
        layer.inner.read(
            task.buffer[range.begin..][0..range.size],
            slot.read.offset + range.begin,
        ) catch |err|
            return if (err == error.Lost) error.Lost else error.StoreError;
    }
    return true;
}

fn conclude(
    reads: *StreamReads,
    port: anytype,
    task: *Task,
    what: enum { over, again, parked },
) bool {
    if (task.layer) |layer| port.endLayerRead(layer);
    switch (what) {
        .over => reads.queue.end(task.slot),
        .again => reads.queue.toCold(task.slot),
        .parked => reads.queue.park(task.slot),
    }
    reads.workers.release(task);
    return true;
}

const Sending = struct {
    bytes: []const u8,
    sent: *u16,
    arrival: Arrival,
    in_hand_us: u64,
    /// Nothing of it has been sent yet.
    is_begin: bool,
    is_cold: bool,

    fn ofSlot(slot: *Slot, bytes: []const u8) Sending {
        const is_begin = slot.in_hand_us == null;
        const in_hand_us = slot.in_hand_us orelse sys.monotonicUs();
        slot.in_hand_us = in_hand_us;
        return .{
            .bytes = bytes,
            .sent = &slot.sent,
            .arrival = slot.arrival,
            .in_hand_us = in_hand_us,
            .is_begin = is_begin,
            .is_cold = slot.tries > 0,
        };
    }
};

/// Returns false if the send buffer is full; the rest is sent when it has free space.
fn send(
    reads: *StreamReads,
    port: anytype,
    socket: *UdpSocket,
    read: *const ReadRequest,
    what: Sending,
) bool {
    if (what.is_begin) port.onSending(read, what.arrival);
    switch (port.sendRead(socket, read, what.bytes, what.sent.*)) {
        .all => {},
        .some => |count| {
            what.sent.* = count;
            reads.awaits_socket = true;
            return false;
        },
        .gone => {
            reads.figures.gone += 1;
            return true;
        },
    }
    reads.queue.charge(flowOf(read), read.bytes_out);
    const now_us = sys.monotonicUs();
    const storage_us = what.in_hand_us -| what.arrival.at_us;
    if (what.is_cold) reads.figures.cold_us +|= storage_us;
    port.onAnswered(read, what.arrival, now_us, .{
        .is_cold = what.is_cold,
        .storage_us = storage_us,
        .send_us = now_us -| what.in_hand_us,
    });
    return true;
}

fn isGone(reads: *StreamReads, port: anytype, slot: *const Slot) bool {
    if (port.hasSession(slot.read.session_id)) return false;
    reads.figures.gone += 1;
    return true;
}

/// The waiting READs of a session's slot are those of one device.
fn flowOf(read: *const ReadRequest) u16 {
    return core.stream.Server.slotOf(read.session_id);
}

/// Returns the whole answer to a READ, packed or plain, if this does not have to wait. Null: a
/// thread is needed.
fn answerNow(reads: *StreamReads, port: anytype, read: *ReadRequest) Error!?[]const u8 {
    if (reads.packer) |packer| if (read.may_pack) {
        const disk = port.diskOf(read.version_id) orelse return error.StoreError;
        // What a device has written is never packed.
        const is_below = if (try layerOf(port, read)) |layer| isBelow(layer, read) else true;
        if (is_below) if (packing.answer(packer, disk, read, reads.buffer, reads.answer)) |bytes|
            return bytes;
    };
    _ = read.answerBy(0);
    return if (try fillNow(port, read, reads.buffer)) reads.buffer else null;
}

/// Returns whether nothing of a READ's range is in the device's layer.
fn isBelow(layer: *write_caches.Layer, read: *const ReadRequest) bool {
    var runs = layer.inner.runs(read.offset, read.length);
    while (runs.next()) |run| if (run.is_own) return false;
    return true;
}

/// Reads the range of a READ into its position in `buffer`, if this does not have to wait. False: a
/// thread is needed.
fn fillNow(port: anytype, read: *const ReadRequest, buffer: []u8) Error!bool {
    const layer = try layerOf(port, read);
    const disk = port.diskOf(read.version_id) orelse return error.StoreError;
    const source = if (layer) |above| above.inner.source() else disk.source();
    var ranges: ByteRanges = .{ .read = read };
    while (ranges.next()) |range| {
        const is_read = source.readNow(
            buffer[range.begin..][0..range.size],
            read.offset + range.begin,
        ) catch |err|
            // A thread reads it again, and may have the place repaired.
            return if (err == error.Lost) error.Lost else false;
        if (!is_read) return false;
    }
    return true;
}

/// A thread has the layer: it writes what came before.
fn isParked(port: anytype, read: *const ReadRequest) bool {
    if (read.write_cache == .device_ram) return false;
    const layer = port.layerOf(read.boot_id) orelse return false;
    return layer.isWriting();
}

/// The version below is never served instead of the device's writes.
fn layerOf(port: anytype, read: *const ReadRequest) Error!?*write_caches.Layer {
    if (read.write_cache == .device_ram) return null;
    const layer = port.layerOf(read.boot_id) orelse return error.Lost;
    return if (layer.held().state == .stopped) error.Stopped else layer;
}

/// Collects what a thread has to know, and keeps everything open that it reads.
fn prepare(port: anytype, task: *Task, slot: *Slot) Error!void {
    const read = &slot.read;
    const layer = try layerOf(port, read);
    const disk = port.diskOf(read.version_id) orelse return error.StoreError;
    task.slot = slot;
    task.begin = read.offset;
    task.result = {};
    task.parts.clear();
    task.disk = version_disk.HeldDisk.init(disk) catch return error.StoreError;
    task.layer = layer;
    var ranges: ByteRanges = .{ .read = read };
    while (ranges.next()) |range| addParts(task, read.offset + range.begin, range.size);
    if (layer) |above| port.beginLayerRead(above);
}

/// Parts that do not fit are found missing and read the next time.
fn addParts(task: *Task, offset: u64, size: usize) void {
    const layer = task.layer orelse
        return task.parts.appendAssumeCapacity(
            .{ .offset = offset, .size = @intCast(size), .is_own = false },
        );
    var runs = layer.inner.runs(offset, size);
    while (runs.next()) |run|
        task.parts.append(
            .{ .offset = run.offset, .size = @intCast(run.size), .is_own = run.is_own },
        ) catch return;
}

/// The bytes that a READ requests, from its start: all of it, or the fragments that it names.
const ByteRanges = struct {
    read: *const ReadRequest,
    index: u16 = 0,

    fn next(ranges: *ByteRanges) ?struct { begin: usize, size: usize } {
        const read = ranges.read;
        const count = read.ranges.count();
        if (ranges.index >= @max(1, count)) return null;
        defer ranges.index += 1;
        if (count == 0) return .{ .begin = 0, .size = read.length };
        const range = read.ranges.at(ranges.index);
        const begin = @as(usize, range.first_fragment) * read.fragment_size;
        const size = @as(usize, range.fragment_count) * read.fragment_size;
        return .{ .begin = begin, .size = @min(size, read.length - begin) };
    }
};

test {
    _ = @import("reads_test.zig");
}
