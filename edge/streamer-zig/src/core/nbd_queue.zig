//! The block device's requests between the kernel and the stream. A request of any length is cut into parts that the
//! stream takes, parts of several requests are read at the same time, and each request is answered as one piece: header,
//! then its bytes in order, with no other reply in between. Replies go out in the order in which they are complete.
//!
//! It holds no disk bytes: a part names the slot whose buffer, `part_size_max` bytes of the caller's, takes them.
//!
//! No request waits for ever for another: requests take slots strictly in the order they came, so when a reply has
//! begun, the parts it still lacks are in slots already or are the next to get one, and each part sent frees a slot.

const std = @import("std");
const assert = std.debug.assert;
const nbd = @import("wire").nbd;

/// Parts that are read or wait to be sent at the same time.
pub const slots_max = 32;
/// Longest part, in bytes; every edge takes reads of this length (`stream.read_size_promised`).
pub const part_size_max = 128 << 10;

comptime {
    assert(part_size_max == @import("wire").stream.read_size_promised);
}

pub const NbdQueue = struct {
    disk_size: u64,
    slots: [slots_max]Slot = @splat(.{}),
    /// The request whose parts are being handed out; no other is taken meanwhile.
    intake: ?Intake = null,
    /// Sequence of the part that the begun reply goes on with.
    reply_next: ?u64 = null,
    sequence_next: u64 = 0,

    const Intake = struct {
        handle: u64,
        offset: u64,
        /// Bytes not handed out yet; never 0.
        left: u32,
        is_first: bool = true,
    };

    const Slot = struct {
        state: enum { free, reading, complete } = .free,
        sequence: u64 = 0,
        handle: u64 = 0,
        length: u32 = 0,
        code: nbd.ErrorCode = .none,
        is_first: bool = false,
        is_last: bool = false,
    };

    /// Something to read: `length` bytes at `offset` into the buffer of `slot`.
    pub const Part = struct { slot: u8, offset: u64, length: u32 };

    /// Something to send: the header where there is one, then `length` bytes of the buffer of `slot`.
    pub const Outgoing = struct { slot: u8, header: ?nbd.Reply, length: u32 };

    /// `disk_size` in bytes, not 0.
    pub fn init(disk_size: u64) NbdQueue {
        assert(disk_size > 0);
        return .{ .disk_size = disk_size };
    }

    /// Whether `take` may be called: the last request has all its slots, and one is free for another.
    pub fn wantsRequest(queue: *const NbdQueue) bool {
        return queue.intake == null and queue.freeSlot() != null;
    }

    /// Takes the kernel's next request. Whatever is not a read within the disk is answered without reading; the caller
    /// drops the bytes that follow a write.
    pub fn take(queue: *NbdQueue, request: nbd.Request) void {
        assert(queue.wantsRequest());
        switch (request.command) {
            .read => {
                const is_inside = request.offset <= queue.disk_size and
                    request.length <= queue.disk_size - request.offset;
                if (!is_inside or request.length == 0) return queue.answer(request.handle, .invalid);
                queue.intake = .{ .handle = request.handle, .offset = request.offset, .left = request.length };
            },
            // Nothing is written, so everything is on disk already.
            .flush => queue.answer(request.handle, .none),
            .write, .trim, .write_zeroes => queue.answer(request.handle, .not_permitted),
            .disconnect, .cache, _ => queue.answer(request.handle, .invalid),
        }
    }

    /// The next part to read, now in a slot; null when there is none or no slot is free.
    pub fn nextPart(queue: *NbdQueue) ?Part {
        if (queue.intake == null) return null;
        const index = queue.freeSlot() orelse return null;
        const intake = &queue.intake.?;
        assert(intake.left > 0);
        const part: Part = .{ .slot = index, .offset = intake.offset, .length = @min(intake.left, part_size_max) };
        queue.fill(index, .{
            .state = .reading,
            .handle = intake.handle,
            .length = part.length,
            .is_first = intake.is_first,
            .is_last = part.length == intake.left,
        });
        intake.is_first = false;
        intake.offset += part.length;
        intake.left -= part.length;
        if (intake.left == 0) queue.intake = null;
        return part;
    }

    /// All bytes of the slot's part are in its buffer.
    pub fn complete(queue: *NbdQueue, slot: u8) void {
        assert(queue.slots[slot].state == .reading);
        queue.slots[slot].state = .complete;
    }

    /// The slot's part can never be read. A reply that has begun cannot take its header back, so the socket is of no
    /// more use then: the caller gives it up. Else the request is answered as failed.
    pub fn fail(queue: *NbdQueue, slot: u8) error{ReplyBegun}!void {
        assert(queue.slots[slot].state == .reading);
        if (!queue.slots[slot].is_first or !queue.slots[slot].is_last) return error.ReplyBegun;
        queue.slots[slot].code = .input_output;
        queue.slots[slot].length = 0;
        queue.slots[slot].state = .complete;
    }

    /// The next piece for the kernel, which is then sent whole and reported by `sent`; null when nothing is complete.
    pub fn nextOutgoing(queue: *const NbdQueue) ?Outgoing {
        var oldest: ?u8 = null;
        for (&queue.slots, 0..) |*slot, index| {
            if (slot.state != .complete) continue;
            if (queue.reply_next) |sequence| {
                if (slot.sequence == sequence) return .{ .slot = @intCast(index), .header = null, .length = slot.length };
            } else if (slot.is_first) {
                if (oldest == null or slot.sequence < queue.slots[oldest.?].sequence) oldest = @intCast(index);
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

    /// Parts that wait for the stream.
    pub fn readingCount(queue: *const NbdQueue) u8 {
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
};

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

test "a reply that has begun is not interrupted by another" {
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
        // The bytes come in the wrong order.
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

test "nothing is taken while no slot is free" {
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
        .{ .request = .{ .command = .write, .flags = 0, .handle = 1, .offset = 0, .length = 512 }, .code = .not_permitted },
        .{ .request = .{ .command = .trim, .flags = 0, .handle = 2, .offset = 0, .length = 512 }, .code = .not_permitted },
        .{ .request = .{ .command = .flush, .flags = 0, .handle = 3, .offset = 0, .length = 0 }, .code = .none },
        .{ .request = readOf(4, 8192, 512), .code = .invalid },
        .{ .request = readOf(5, std.math.maxInt(u64) - 511, 512), .code = .invalid },
        .{ .request = readOf(6, 0, 0), .code = .invalid },
    };
    for (cases) |case| {
        queue.take(case.request);
        try testing.expectEqual(null, queue.nextPart());
        const reply = queue.nextOutgoing().?;
        try testing.expectEqual(nbd.Reply{ .code = case.code, .handle = case.request.handle }, reply.header.?);
        try testing.expectEqual(0, reply.length);
        queue.sent(reply.slot);
    }
}

test "a read that can never succeed is answered as an input/output error" {
    var queue: NbdQueue = .init(disk_size_of_tests);
    queue.take(readOf(1, 0, 512));
    try queue.fail(queue.nextPart().?.slot);
    const reply = queue.nextOutgoing().?;
    try testing.expectEqual(nbd.ErrorCode.input_output, reply.header.?.code);
    try testing.expectEqual(0, reply.length);
}
