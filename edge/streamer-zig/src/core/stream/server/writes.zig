//! Writes of devices at the edge (packages/proto/STREAM.md, "Writes"): reassembles the fragments of
//! a write, and ensures that each request is executed once, despite retransmission, reordering and
//! delay. Its memory is allocated once; a device that writes much cannot take every slot.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const writes = wire.writes;
const assert = std.debug.assert;

/// Requests of one session by id: which arrived, which is being executed, how it ended. A device
/// never sends one that is `window` ids ahead of one whose end it does not know; a request so far
/// behind the newest has ended for the device, and is late.
pub const Window = struct {
    newest: u32 = 0,
    has_newest: bool = false,
    /// Bit i: request `newest - i` has ended.
    ended: u64 = 0,
    busy: u64 = 0,
    codes: [writes.window]wire.WriteCode = @splat(.done),

    pub const State = union(enum) { new, late, busy, ended: wire.WriteCode };

    comptime {
        assert(writes.window == 64);
    }

    /// Returns the state of a request that has arrived.
    pub fn check(window: *Window, request_id: u32) State {
        const ahead: i32 = @bitCast(request_id -% window.newest);
        if (!window.has_newest or ahead > 0) {
            const shift: u32 = if (window.has_newest) @intCast(ahead) else writes.window;
            window.ended = if (shift >= writes.window) 0 else window.ended << @intCast(shift);
            window.busy = if (shift >= writes.window) 0 else window.busy << @intCast(shift);
            window.newest = request_id;
            window.has_newest = true;
            return .new;
        }
        assert(window.has_newest);
        const bit = window.bitOf(request_id) orelse return .late;
        if (window.ended & bit != 0) return .{ .ended = window.codes[request_id % writes.window] };
        return if (window.busy & bit != 0) .busy else .new;
    }

    /// Its execution starts.
    pub fn begin(window: *Window, request_id: u32) void {
        assert(window.busy & window.bitOf(request_id).? == 0);
        window.busy |= window.bitOf(request_id).?;
        assert(window.busy & window.ended == 0);
    }

    /// Its execution ended. Null: it was not executed and may arrive again.
    pub fn end(window: *Window, request_id: u32, code: ?wire.WriteCode) void {
        const bit = window.bitOf(request_id) orelse return;
        window.busy &= ~bit;
        window.codes[request_id % writes.window] = code orelse return;
        window.ended |= bit;
        assert(window.busy & bit == 0);
    }

    fn bitOf(window: *const Window, request_id: u32) ?u64 {
        const behind = window.newest -% request_id;
        return if (behind >= writes.window) null else @as(u64, 1) << @intCast(behind);
    }
};

/// Writes of which some fragments have not arrived.
pub const Collector = struct {
    slots: []Slot,
    buffers: []u8,
    /// The list in an answer.
    missing: [writes.missing_size_max]u8 = undefined,

    /// Slots that one session may have while others need theirs.
    const per_session_max = 8;
    /// A write without progress for this long loses its slot; its device retransmits all of it.
    const idle_us_max = 2 * std.time.us_per_s;

    const Slot = struct {
        /// 0: free.
        session_id: u64 = 0,
        request_id: u32 = 0,
        offset: u64 = 0,
        length: u32 = 0,
        fragment_size: u16 = 0,
        fragment_count: u16 = 0,
        came: std.bit_set.Static(writes.fragments_max) = .empty,
        count: u16 = 0,
        last_at_us: u64 = 0,
    };

    pub const Key = struct { session_id: u64, request_id: u32 };

    pub const CollectResult = union(enum) {
        /// More has to arrive.
        part,
        /// All bytes; valid until the next packet.
        whole: []const u8,
        /// The fragments to retransmit; valid until the next packet.
        missing: []const u8,
        /// It contradicts earlier fragments of this write, or has the wrong length.
        mismatch,
        /// No slot is free.
        busy,
    };

    pub fn init(gpa: std.mem.Allocator, places_max: u16) error{OutOfMemory}!Collector {
        const slots = try gpa.alloc(Slot, places_max);
        errdefer gpa.free(slots);
        @memset(slots, .{});
        const buffers_size = @as(usize, places_max) * writes.write_size_max;
        return .{
            .slots = slots,
            .buffers = try base.allocUntouched(gpa, u8, buffers_size),
        };
    }

    pub fn deinit(collector: *Collector, gpa: std.mem.Allocator) void {
        gpa.free(collector.slots);
        base.freeUntouched(gpa, u8, collector.buffers);
        collector.* = undefined;
    }

    pub fn take(
        collector: *Collector,
        now_us: u64,
        key: Key,
        write: *const wire.Write,
    ) CollectResult {
        const count = writes.fragmentCount(write.length, write.fragment_size);
        if (write.index >= count) return .mismatch;
        if (write.payload.len != writes.fragmentLength(
            write.length,
            write.fragment_size,
            write.index,
        )) return .mismatch;
        // Most writes of small blocks are a single fragment: they need no slot.
        if (count == 1) return .{ .whole = write.payload };
        const slot = collector.find(key.session_id, key.request_id) orelse
            collector.takeSlot(now_us, key.session_id) orelse return .busy;
        // A device that found a narrower path resends all of it.
        if (slot.session_id == 0 or slot.fragment_size != write.fragment_size) slot.* = .{
            .session_id = key.session_id,
            .request_id = key.request_id,
            .offset = write.offset,
            .length = write.length,
            .fragment_size = write.fragment_size,
            .fragment_count = count,
        };
        if (slot.offset != write.offset or slot.length != write.length) return .mismatch;
        assert(slot.session_id == key.session_id);
        assert(slot.fragment_count == count);
        slot.last_at_us = now_us;
        const is_duplicate = slot.came.isSet(write.index);
        if (!is_duplicate) {
            slot.came.set(write.index);
            slot.count += 1;
            assert(slot.count <= slot.fragment_count);
            const at = @as(usize, write.index) * writes.payloadSize(write.fragment_size);
            @memcpy(collector.bufferOf(slot)[at..][0..write.payload.len], write.payload);
        }
        if (slot.count == count) {
            const bytes = collector.bufferOf(slot)[0..slot.length];
            slot.* = .{};
            return .{ .whole = bytes };
        }
        // In-order packets end here if something behind this one is missing.
        if (!is_duplicate)
            for (write.index..count) |index| if (!slot.came.isSet(index)) return .part;
        return .{ .missing = collector.listMissing(slot) };
    }

    /// The session is over.
    pub fn drop(collector: *Collector, session_id: u64) void {
        for (collector.slots) |*slot| if (slot.session_id == session_id) {
            slot.* = .{};
        };
    }

    fn listMissing(collector: *Collector, slot: *const Slot) []const u8 {
        assert(slot.session_id != 0);
        assert(slot.count < slot.fragment_count);
        const list = collector.missing[0 .. (slot.fragment_count + 7) / 8];
        @memset(list, 0);
        for (0..slot.fragment_count) |index| {
            if (!slot.came.isSet(index)) list[index / 8] |= @as(u8, 1) << @intCast(index % 8);
        }
        return list;
    }

    fn find(collector: *Collector, session_id: u64, request_id: u32) ?*Slot {
        assert(session_id != 0);
        for (collector.slots) |*slot| {
            if (slot.session_id == session_id and slot.request_id == request_id) return slot;
        }
        return null;
    }

    fn takeSlot(collector: *Collector, now_us: u64, session_id: u64) ?*Slot {
        var own: u16 = 0;
        var free: ?*Slot = null;
        for (collector.slots) |*slot| {
            if (now_us -| slot.last_at_us >= idle_us_max) slot.* = .{};
            if (slot.session_id == session_id) own += 1;
            if (slot.session_id == 0) free = slot;
        }
        return if (own < per_session_max) free else null;
    }

    fn bufferOf(collector: *Collector, slot: *const Slot) []u8 {
        const index = slot - collector.slots.ptr;
        assert(index < collector.slots.len);
        return collector.buffers[index * writes.write_size_max ..][0..writes.write_size_max];
    }
};

const testing = std.testing;

test "a request is new until it is executed, and late when it is far behind" {
    var window: Window = .{};
    try testing.expectEqual(.new, window.check(1000));
    try testing.expectEqual(.new, window.check(1000));
    // Requests before the first that arrived may still arrive.
    try testing.expectEqual(.new, window.check(990));
    window.begin(990);
    try testing.expectEqual(.busy, window.check(990));
    window.end(990, null);
    try testing.expectEqual(.new, window.check(990));
    window.begin(990);
    window.end(990, .cache_full);
    try testing.expectEqual(Window.State{ .ended = .cache_full }, window.check(990));
    try testing.expectEqual(.new, window.check(990 + 63));
    try testing.expectEqual(Window.State{ .ended = .cache_full }, window.check(990));
    try testing.expectEqual(.new, window.check(990 + 64));
    try testing.expectEqual(.late, window.check(990));
    try testing.expectEqual(.new, window.check(5000));
    try testing.expectEqual(.late, window.check(990 + 64));
    // A request that is far behind by now has no bit any more.
    window.end(990, .done);
}

test "ids wrap" {
    var window: Window = .{};
    try testing.expectEqual(.new, window.check(std.math.maxInt(u32)));
    window.begin(std.math.maxInt(u32));
    window.end(std.math.maxInt(u32), .done);
    try testing.expectEqual(.new, window.check(3));
    try testing.expectEqual(Window.State{ .ended = .done }, window.check(std.math.maxInt(u32)));
}

test "fragments arrive in any order, more than once, and missing ones are named" {
    var collector: Collector = try .init(testing.allocator, 2);
    defer collector.deinit(testing.allocator);
    var bytes: [4096]u8 = undefined;
    for (&bytes, 0..) |*byte, index| byte.* = @truncate(index * 7);
    const fragment = struct {
        fn of(all: []const u8, index: u16) wire.Write {
            const payload =
                all[@as(usize, index) * writes.payloadSize(
                    1440,
                ) ..][0..writes.fragmentLength(4096, 1440, index)];
            return .{
                .version_tag = 1,
                .offset = 512,
                .length = 4096,
                .fragment_size = 1440,
                .index = index,
                .payload = payload,
            };
        }
    }.of;
    const last = collector.take(0, .{ .session_id = 5, .request_id = 9 }, &fragment(&bytes, 2));
    try testing.expectEqualSlices(u8, &.{0b011}, last.missing);
    const first = collector.take(0, .{ .session_id = 5, .request_id = 9 }, &fragment(&bytes, 0));
    try testing.expectEqual(.part, first);
    const again = collector.take(0, .{ .session_id = 5, .request_id = 9 }, &fragment(&bytes, 0));
    try testing.expectEqualSlices(u8, &.{0b010}, again.missing);
    var wrong = fragment(&bytes, 1);
    wrong.offset = 1024;
    try testing.expectEqual(
        .mismatch,
        collector.take(0, .{ .session_id = 5, .request_id = 9 }, &wrong),
    );
    const whole = collector.take(0, .{ .session_id = 5, .request_id = 9 }, &fragment(&bytes, 1));
    try testing.expectEqualSlices(u8, &bytes, whole.whole);
}

test "a session has a limited number of slots, and idle ones are freed" {
    var collector: Collector = try .init(testing.allocator, Collector.per_session_max + 1);
    defer collector.deinit(testing.allocator);
    const payload: [1416]u8 = @splat(1);
    const write: wire.Write =
        .{
            .version_tag = 1,
            .offset = 0,
            .length = 4096,
            .fragment_size = 1440,
            .index = 0,
            .payload = &payload,
        };
    for (0..Collector.per_session_max) |id|
        try testing.expectEqual(
            .part,
            collector.take(0, .{ .session_id = 5, .request_id = @intCast(id) }, &write),
        );
    try testing.expectEqual(
        .busy,
        collector.take(0, .{ .session_id = 5, .request_id = 100 }, &write),
    );
    try testing.expectEqual(
        .part,
        collector.take(0, .{ .session_id = 6, .request_id = 100 }, &write),
    );
    try testing.expectEqual(
        .busy,
        collector.take(0, .{ .session_id = 7, .request_id = 100 }, &write),
    );
    try testing.expectEqual(
        .part,
        collector.take(Collector.idle_us_max, .{ .session_id = 7, .request_id = 100 }, &write),
    );
}

fn fragmentOf(index: u16, length: u32) wire.Write {
    const zeros: [1416]u8 = @splat(0);
    const count = writes.fragmentCount(length, 1440);
    const size = if (index < count) writes.fragmentLength(length, 1440, index) else 0;
    return .{
        .version_tag = 1,
        .offset = 0,
        .length = length,
        .fragment_size = 1440,
        .index = index,
        .payload = zeros[0..size],
    };
}

test "the list of missing fragments has a bit for each, and no byte more" {
    var collector: Collector = try .init(testing.allocator, 1);
    defer collector.deinit(testing.allocator);
    // Eight fragments.
    const key: Collector.Key = .{ .session_id = 5, .request_id = 1 };
    try testing.expectEqualSlices(
        u8,
        &.{0b0111_1111},
        collector.take(0, key, &fragmentOf(7, 11264)).missing,
    );
    try testing.expectEqual(.part, collector.take(0, key, &fragmentOf(0, 11264)));
    // The one before it closes a gap at the end: everything behind it has arrived.
    try testing.expectEqualSlices(
        u8,
        &.{0b0011_1110},
        collector.take(0, key, &fragmentOf(6, 11264)).missing,
    );
}

test "the list of missing fragments begins another byte with the ninth" {
    var collector: Collector = try .init(testing.allocator, 1);
    defer collector.deinit(testing.allocator);
    const key: Collector.Key = .{ .session_id = 5, .request_id = 1 };
    try testing.expectEqualSlices(
        u8,
        &.{ 0xff, 0 },
        collector.take(0, key, &fragmentOf(8, 12288)).missing,
    );
}

test "a fragment behind the write's last one contradicts it" {
    var collector: Collector = try .init(testing.allocator, 1);
    defer collector.deinit(testing.allocator);
    const key: Collector.Key = .{ .session_id = 5, .request_id = 1 };
    try testing.expectEqual(.mismatch, collector.take(0, key, &fragmentOf(1, 512)));
    try testing.expectEqual(.mismatch, collector.take(0, key, &fragmentOf(3, 4096)));
}

test "a write of one fragment needs no slot, and the end of a session frees its own" {
    var collector: Collector = try .init(testing.allocator, 2);
    defer collector.deinit(testing.allocator);
    for ([_]u64{ 1, 2 }) |id|
        try testing.expectEqual(.part, collector.take(
            0,
            .{ .session_id = id, .request_id = 1 },
            &fragmentOf(0, 4096),
        ));
    const third: Collector.Key = .{ .session_id = 3, .request_id = 1 };
    try testing.expectEqual(.busy, collector.take(0, third, &fragmentOf(0, 4096)));
    try testing.expectEqual(512, collector.take(0, third, &fragmentOf(0, 512)).whole.len);
    collector.drop(2);
    try testing.expectEqual(.part, collector.take(0, third, &fragmentOf(0, 4096)));
    // The other session's fragment is still there.
    const first: Collector.Key = .{ .session_id = 1, .request_id = 1 };
    try testing.expectEqualSlices(
        u8,
        &.{0b010},
        collector.take(0, first, &fragmentOf(2, 4096)).missing,
    );
    // It makes no progress.
    const later = Collector.idle_us_max;
    const fourth: Collector.Key = .{ .session_id = 4, .request_id = 1 };
    try testing.expectEqual(.busy, collector.take(later - 1, fourth, &fragmentOf(0, 4096)));
    try testing.expectEqual(.part, collector.take(later, fourth, &fragmentOf(0, 4096)));
}

test "a collector that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var collector: Collector = try .init(gpa, 2);
            collector.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}
