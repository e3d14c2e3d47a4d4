//! The queue of block device requests between the kernel and the stream. A request of any length is
//! split into parts that the stream accepts, parts of several requests are read at the same time,
//! and each request gets one contiguous reply: header, then its bytes in order. Replies are sent in
//! the order in which they are complete.
//!
//! It holds no disk bytes: a part names the slot whose buffer, `part_size_max` bytes of the
//! caller's, receives them.
//!
//! No deadlock: requests take slots strictly in order of arrival, so when a reply has begun, the
//! parts that it lacks are in slots already or are the next to get one, and each part sent frees a
//! slot.

const std = @import("std");
const assert = std.debug.assert;
const nbd = @import("wire").nbd;

/// Parts that are read or wait to be sent at the same time.
pub const slots_max = 32;
/// Longest part, in bytes; every edge accepts reads of this length (`stream.read_size_promised`).
pub const part_size_max = 128 << 10;
const discard_size_max = @import("wire").stream.writes.discard_size_max;

comptime {
    assert(part_size_max == @import("wire").stream.read_size_promised);
}

pub const NbdQueue = @This();

disk_size: u64,
/// Writes, discards and flushes go to the edge; otherwise the device is read-only.
takes_writes: bool = false,
slots: [slots_max]Slot = @splat(.{}),
/// The request whose parts are being handed out; no other is taken meanwhile.
intake: ?Intake = null,
/// Sequence of the next part of the reply in progress.
reply_next: ?u64 = null,
sequence_next: u64 = 0,

pub const Kind = enum(u32) { read, write, flush, discard };

const Intake = struct {
    kind: Kind,
    handle: u64,
    offset: u64,
    /// Bytes not handed out yet; never 0.
    left: u32,
    is_first: bool = true,
    /// Of the parts that have ended so far.
    code: nbd.ErrorCode = .none,
};

const Slot = struct {
    /// `filling`: the bytes of a write come from the kernel.
    state: enum { free, filling, reading, complete } = .free,
    kind: Kind = .read,
    sequence: u64 = 0,
    handle: u64 = 0,
    length: u32 = 0,
    code: nbd.ErrorCode = .none,
    is_first: bool = false,
    is_last: bool = false,
};

/// One operation: `length` bytes at `offset`, read into the buffer of `slot` or written from
/// it. Later parts have a higher `sequence`.
pub const Part =
    struct { slot: u8, kind: Kind = .read, offset: u64, length: u32, sequence: u64 = 0 };

/// One piece to send: the header if there is one, then `length` bytes of the buffer of `slot`.
pub const Outgoing = struct { slot: u8, header: ?nbd.Reply, length: u32 };

/// `disk_size` in bytes, not 0.
pub fn init(disk_size: u64) NbdQueue {
    assert(disk_size > 0);
    return .{ .disk_size = disk_size };
}

/// Tells whether `take` may be called: the last request has all its slots, and one is free for
/// another.
pub fn wantsRequest(queue: *const NbdQueue) bool {
    return queue.intake == null and queue.freeSlot() != null;
}

/// Tells whether the bytes that follow a write go into the slots of its parts; otherwise the
/// caller drops them.
pub fn wantsBytes(queue: *const NbdQueue) bool {
    const intake = queue.intake orelse return false;
    return intake.kind == .write;
}

/// Takes the kernel's next request. A request beyond the disk is answered at once.
pub fn take(queue: *NbdQueue, request: nbd.Request) void {
    assert(queue.wantsRequest());
    const kind: Kind = switch (request.command) {
        .read => .read,
        .write => .write,
        .trim, .write_zeroes => .discard,
        // If nothing is written, everything is durable already.
        .flush => if (queue.takes_writes) .flush else return queue.answer(request.handle, .none),
        .disconnect, .cache, _ => return queue.answer(request.handle, .invalid),
    };
    if (kind != .read and !queue.takes_writes) return queue.answer(request.handle, .not_permitted);
    const is_inside = request.offset <= queue.disk_size and
        request.length <= queue.disk_size - request.offset;
    if (kind != .flush and (!is_inside or request.length == 0))
        return queue.answer(request.handle, .invalid);
    queue.intake = .{
        .kind = kind,
        .handle = request.handle,
        .offset = if (kind == .flush) 0 else request.offset,
        .left = if (kind == .flush) 0 else request.length,
    };
}

/// Returns the next part of a request without payload, now in a slot; null when there is none
/// or no slot is free.
pub fn nextPart(queue: *NbdQueue) ?Part {
    return if (queue.wantsBytes()) null else queue.cutPart();
}

/// Returns the next part of a write: its bytes go into the slot's buffer, then the caller calls
/// `filled`.
pub fn nextPartToFill(queue: *NbdQueue) ?Part {
    return if (queue.wantsBytes()) queue.cutPart() else null;
}

/// All bytes of the write's part are in its buffer.
pub fn filled(queue: *NbdQueue, slot: u8) void {
    assert(queue.slots[slot].state == .filling);
    queue.slots[slot].state = .reading;
}

fn cutPart(queue: *NbdQueue) ?Part {
    if (queue.intake == null) return null;
    const index = queue.freeSlot() orelse return null;
    const intake = &queue.intake.?;
    assert(intake.left > 0 or intake.kind == .flush);
    const size_max: u32 = if (intake.kind == .discard) discard_size_max else part_size_max;
    const part: Part = .{
        .slot = index,
        .kind = intake.kind,
        .offset = intake.offset,
        .length = @min(intake.left, size_max),
        .sequence = queue.sequence_next,
    };
    queue.fill(index, .{
        .state = if (intake.kind == .write) .filling else .reading,
        .kind = intake.kind,
        .handle = intake.handle,
        .length = part.length,
        .code = intake.code,
        .is_first = intake.is_first,
        .is_last = part.length == intake.left,
    });
    intake.is_first = false;
    intake.offset += part.length;
    intake.left -= part.length;
    if (intake.left == 0) queue.intake = null;
    return part;
}

/// All bytes of the slot's part are in its buffer, or written.
pub fn complete(queue: *NbdQueue, slot: u8) void {
    assert(queue.slots[slot].state == .reading);
    if (queue.slots[slot].kind != .read) return queue.endPart(slot, .none);
    queue.slots[slot].state = .complete;
}

/// A part of a request whose reply has no payload has ended. The last one to end carries the
/// reply; it is a failure if any part failed.
fn endPart(queue: *NbdQueue, index: u8, code: nbd.ErrorCode) void {
    const handle = queue.slots[index].handle;
    var worst = if (queue.slots[index].code == .none) code else queue.slots[index].code;
    const others = if (queue.intake) |intake| intake.handle == handle else false;
    var other: ?*Slot = null;
    for (&queue.slots, 0..) |*slot, at| {
        if (at == index or slot.state == .free or slot.state == .complete) continue;
        if (slot.handle == handle and slot.kind != .read) other = slot;
    }
    if (other) |slot| {
        if (slot.code == .none) slot.code = worst;
        queue.slots[index] = .{};
        return;
    }
    if (others) {
        const intake = &queue.intake.?;
        if (intake.code == .none) intake.code = worst;
        queue.slots[index] = .{};
        return;
    }
    if (worst == .none) worst = code;
    queue.slots[index].state = .complete;
    queue.slots[index].code = worst;
    queue.slots[index].length = 0;
    queue.slots[index].is_first = true;
    queue.slots[index].is_last = true;
}

/// The slot's part can never be read or written. A reply in progress cannot retract its header,
/// so its socket is useless and the caller closes it. Otherwise the request is answered as
/// failed.
pub fn fail(queue: *NbdQueue, slot: u8, code: nbd.ErrorCode) error{ReplyBegun}!void {
    assert(queue.slots[slot].state == .reading);
    if (queue.slots[slot].kind != .read) return queue.endPart(slot, code);
    if (!queue.slots[slot].is_first or !queue.slots[slot].is_last) return error.ReplyBegun;
    queue.slots[slot].code = code;
    queue.slots[slot].length = 0;
    queue.slots[slot].state = .complete;
}

/// Returns the next piece for the kernel, which the caller sends whole and confirms by `sent`;
/// null when nothing is complete.
pub fn nextOutgoing(queue: *const NbdQueue) ?Outgoing {
    var oldest: ?u8 = null;
    for (&queue.slots, 0..) |*slot, index| {
        if (slot.state != .complete) continue;
        if (queue.reply_next) |sequence| {
            if (slot.sequence == sequence)
                return .{ .slot = @intCast(index), .header = null, .length = slot.length };
        } else if (slot.is_first) {
            if (oldest == null or slot.sequence < queue.slots[oldest.?].sequence)
                oldest = @intCast(index);
        }
    }
    const slot = &queue.slots[oldest orelse return null];
    return .{
        .slot = oldest.?,
        .header = .{ .code = slot.code, .handle = slot.handle },
        .length = slot.length,
    };
}

/// The piece was sent; its slot is free again.
pub fn sent(queue: *NbdQueue, index: u8) void {
    const slot = &queue.slots[index];
    assert(slot.state == .complete);
    if (queue.reply_next) |sequence| assert(slot.sequence == sequence) else assert(slot.is_first);
    queue.reply_next = if (slot.is_last) null else slot.sequence + 1;
    slot.* = .{};
}

/// Counts the parts that wait for the stream.
fn readingCount(queue: *const NbdQueue) u8 {
    var count: u8 = 0;
    for (queue.slots) |slot| count += @intFromBool(slot.state == .reading);
    return count;
}

fn answer(queue: *NbdQueue, handle: u64, code: nbd.ErrorCode) void {
    queue.fill(queue.freeSlot().?, .{
        .state = .complete,
        .handle = handle,
        .code = code,
        .is_first = true,
        .is_last = true,
    });
}

fn fill(queue: *NbdQueue, index: u8, slot: Slot) void {
    assert(queue.slots[index].state == .free);
    assert(slot.state != .free);
    queue.slots[index] = slot;
    queue.slots[index].sequence = queue.sequence_next;
    queue.sequence_next += 1;
}

fn freeSlot(queue: *const NbdQueue) ?u8 {
    for (queue.slots, 0..) |slot, index| if (slot.state == .free) return @intCast(index);
    return null;
}

const testing = std.testing;
const disk_size_of_tests = 1 << 30;

fn readOf(handle: u64, offset: u64, length: u32) nbd.Request {
    return .{ .command = .read, .flags = 0, .handle = handle, .offset = offset, .length = length };
}

test "requests are answered in the order in which their bytes arrive" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.take(readOf(1, 0, 4096));
    const first = queue.nextPart().?;
    queue.take(readOf(2, 8192, 512));
    const second = queue.nextPart().?;
    try testing.expectEqual(null, queue.nextOutgoing());
    queue.complete(second.slot);
    const reply = queue.nextOutgoing().?;
    try testing.expectEqual(nbd.Reply{ .code = .none, .handle = 2 }, reply.header.?);
    try testing.expectEqual(512, reply.length);
    queue.sent(reply.slot);
    queue.complete(first.slot);
    try testing.expectEqual(1, queue.nextOutgoing().?.header.?.handle);
}

test "a reply in progress is not interrupted by another" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.take(readOf(1, 0, 2 * part_size_max));
    const head = queue.nextPart().?;
    const tail = queue.nextPart().?;
    queue.take(readOf(2, 0, 512));
    const other = queue.nextPart().?;
    queue.complete(head.slot);
    queue.sent(queue.nextOutgoing().?.slot);
    queue.complete(other.slot);
    try testing.expectEqual(null, queue.nextOutgoing());
    queue.complete(tail.slot);
    const rest = queue.nextOutgoing().?;
    try testing.expectEqual(null, rest.header);
    try testing.expectEqual(tail.slot, rest.slot);
    queue.sent(rest.slot);
    try testing.expectEqual(2, queue.nextOutgoing().?.header.?.handle);
}

test "a read longer than all slots together is answered whole and in order" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    const length = (slots_max + 5) * part_size_max + 512;
    queue.take(readOf(9, 512, length));
    var read_end: u64 = 512;
    var sent_size: u32 = 0;
    var reading: [slots_max]u8 = undefined;
    for (0..slots_max * 4) |_| {
        var count: usize = 0;
        while (queue.nextPart()) |part| : (count += 1) {
            try testing.expectEqual(read_end, part.offset);
            read_end += part.length;
            reading[count] = part.slot;
        }
        // The bytes arrive in reverse order.
        while (count > 0) : (count -= 1) queue.complete(reading[count - 1]);
        while (queue.nextOutgoing()) |piece| {
            try testing.expectEqual(sent_size == 0, piece.header != null);
            sent_size += piece.length;
            queue.sent(piece.slot);
        }
    }
    try testing.expectEqual(length, sent_size);
    try testing.expect(queue.wantsRequest());
}

test "no request is taken while no slot is free" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    for (0..slots_max) |index| {
        queue.take(readOf(index, 0, 512));
        try testing.expect(queue.nextPart() != null);
    }
    try testing.expect(!queue.wantsRequest());
    queue.complete(3);
    queue.sent(queue.nextOutgoing().?.slot);
    try testing.expect(queue.wantsRequest());
}

test "a write is refused, a flush succeeds and reads beyond the end are invalid" {
    var queue: NbdQueue = .init(8192);
    const cases = [_]struct { request: nbd.Request, code: nbd.ErrorCode }{
        .{
            .request = .{ .command = .write, .flags = 0, .handle = 1, .offset = 0, .length = 512 },
            .code = .not_permitted,
        },
        .{
            .request = .{ .command = .trim, .flags = 0, .handle = 2, .offset = 0, .length = 512 },
            .code = .not_permitted,
        },
        .{
            .request = .{ .command = .flush, .flags = 0, .handle = 3, .offset = 0, .length = 0 },
            .code = .none,
        },
        .{ .request = readOf(4, 8192, 512), .code = .invalid },
        .{ .request = readOf(5, std.math.maxInt(u64) - 511, 512), .code = .invalid },
        .{ .request = readOf(6, 0, 0), .code = .invalid },
    };
    for (cases) |case| {
        queue.take(case.request);
        try testing.expectEqual(null, queue.nextPart());
        const reply = queue.nextOutgoing().?;
        try testing.expectEqual(
            nbd.Reply{ .code = case.code, .handle = case.request.handle },
            reply.header.?,
        );
        try testing.expectEqual(0, reply.length);
        queue.sent(reply.slot);
    }
}

fn writeOf(handle: u64, offset: u64, length: u32) nbd.Request {
    return .{ .command = .write, .flags = 0, .handle = handle, .offset = offset, .length = length };
}

test "a write is answered once, when all of its parts have ended, in any order" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.takes_writes = true;
    queue.take(writeOf(1, 512, 2 * part_size_max + 512));
    try testing.expect(!queue.wantsRequest());
    try testing.expectEqual(null, queue.nextPart());
    var slots: [3]u8 = undefined;
    for (&slots) |*slot| {
        const part = queue.nextPartToFill().?;
        slot.* = part.slot;
        queue.filled(part.slot);
    }
    try testing.expectEqual(null, queue.nextPartToFill());
    queue.complete(slots[2]);
    queue.complete(slots[0]);
    try testing.expectEqual(null, queue.nextOutgoing());
    queue.complete(slots[1]);
    const reply = queue.nextOutgoing().?;
    try testing.expectEqual(nbd.Reply{ .code = .none, .handle = 1 }, reply.header.?);
    try testing.expectEqual(0, reply.length);
    queue.sent(reply.slot);
    for (queue.slots) |slot| try testing.expectEqual(.free, slot.state);
}

test "a write fails as a whole if one part does, even one that ended before the last" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.takes_writes = true;
    queue.take(writeOf(1, 0, 2 * part_size_max));
    const first = queue.nextPartToFill().?;
    queue.filled(first.slot);
    try queue.fail(first.slot, .no_space);
    try testing.expectEqual(null, queue.nextOutgoing());
    const second = queue.nextPartToFill().?;
    queue.filled(second.slot);
    queue.complete(second.slot);
    try testing.expectEqual(
        nbd.Reply{ .code = .no_space, .handle = 1 },
        queue.nextOutgoing().?.header.?,
    );
}

test "flushes and discards are parts of their own" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.takes_writes = true;
    queue.take(.{ .command = .flush, .flags = 0, .handle = 1, .offset = 0, .length = 0 });
    const flush = queue.nextPart().?;
    try testing.expectEqual(.flush, flush.kind);
    queue.take(
        .{ .command = .trim, .flags = 0, .handle = 2, .offset = 4096, .length = discard_size_max +
            512 },
    );
    const first, const second = .{ queue.nextPart().?, queue.nextPart().? };
    try testing.expectEqual(discard_size_max, first.length);
    try testing.expectEqual(512, second.length);
    try testing.expect(second.sequence > first.sequence);
    queue.complete(first.slot);
    queue.complete(second.slot);
    try testing.expectEqual(2, queue.nextOutgoing().?.header.?.handle);
    queue.sent(queue.nextOutgoing().?.slot);
    queue.complete(flush.slot);
    try testing.expectEqual(1, queue.nextOutgoing().?.header.?.handle);
}

test "a read that can never succeed is answered as an input/output error" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.take(readOf(1, 0, 512));
    try queue.fail(queue.nextPart().?.slot, .input_output);
    const reply = queue.nextOutgoing().?;
    try testing.expectEqual(nbd.ErrorCode.input_output, reply.header.?.code);
    try testing.expectEqual(0, reply.length);
}
