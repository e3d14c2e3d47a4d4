//! The packets of boots in progress in the form of a pcap file
//! (https://www.ietf.org/archive/id/draft-gharris-opsawg-pcap-01.html, times in ns). Bounded per
//! boot and in total: records lie in blocks of one pool, so that many small captures or a few large
//! ones fit. Pure: the caller passes memory, times and bytes.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const CaptureStore = @This();

/// The pool's memory; a boot's records run through a chain of blocks.
blocks: []Block,
/// The next block of the same boot, or of the free list.
following: []u16,
first_free: u16,
slots: []Slot,
/// Packets dropped because the capacity was used up.
dropped: u64 = 0,

pub const block_size = 4096;
pub const Block = [block_size]u8;
/// 16 MiB.
pub const blocks_default = 4096;
pub const slots_default = 1024;
pub const packets_max = 512;
/// Size of a whole file (UPLINK.md).
pub const file_size_max = 256 * 1024;
pub const header_size = 24;
const record_header_size = 16;
const no_block = std.math.maxInt(u16);
const snap_size = 65535;
const link_type_ethernet = 1;
const magic_ns = 0xa1b23c4d;

pub const Slot = struct {
    /// Zero: free.
    boot_id: base.Uuid = .zero,
    /// Address of the boot's device, for frames of another segment.
    ip: ?base.Ip4 = null,
    first: u16 = no_block,
    last: u16 = no_block,
    /// Bytes of all records.
    size: u32 = 0,
    packet_count: u16 = 0,
    /// The boot is over; packets that arrive within a moment still belong to it.
    is_ending: bool = false,
};

pub const Packet = struct {
    bytes: []const u8,
    /// Size on the wire.
    size: u32,
    unix_ns: u64,
};

/// `blocks` has at most 65535 entries and stays the caller's; it is not touched before it is used.
pub fn init(
    gpa: std.mem.Allocator,
    blocks: []Block,
    slots_max: u16,
) error{OutOfMemory}!CaptureStore {
    assert(blocks.len > 0 and blocks.len < no_block);
    const following = try gpa.alloc(u16, blocks.len);
    errdefer gpa.free(following);
    const slots = try gpa.alloc(Slot, slots_max);
    @memset(slots, .{});
    for (following, 1..) |*next, index|
        next.* = if (index == blocks.len) no_block else @intCast(index);
    return .{ .blocks = blocks, .following = following, .first_free = 0, .slots = slots };
}

pub fn deinit(store: *CaptureStore, gpa: std.mem.Allocator) void {
    gpa.free(store.following);
    gpa.free(store.slots);
    store.* = undefined;
}

pub fn find(store: *CaptureStore, boot_id: base.Uuid) ?*Slot {
    for (store.slots) |*slot| if (slot.boot_id.eql(boot_id)) return slot;
    return null;
}

pub fn findByIp(store: *CaptureStore, ip: base.Ip4) ?*Slot {
    for (store.slots) |*slot| {
        if (slot.boot_id.eql(.zero)) continue;
        if (slot.ip) |known| if (known.eql(ip)) return slot;
    }
    return null;
}

/// Returns the slot of this boot, allocated if one is free; null if none is.
pub fn slotFor(store: *CaptureStore, boot_id: base.Uuid) ?*Slot {
    assert(!boot_id.eql(.zero));
    if (store.find(boot_id)) |slot| return slot;
    const slot = store.find(.zero) orelse return null;
    assert(slot.first == no_block);
    slot.* = .{ .boot_id = boot_id };
    return slot;
}

/// Keeps a packet if it fits; otherwise it is dropped and counted.
pub fn add(store: *CaptureStore, slot: *Slot, packet: Packet) void {
    assert(!slot.boot_id.eql(.zero));
    assert(packet.bytes.len <= packet.size);
    const size = record_header_size + packet.bytes.len;
    const fits =
        slot.packet_count < packets_max and header_size + slot.size + size <= file_size_max;
    if (!fits or !store.reserve(slot, size)) {
        store.dropped += 1;
        return;
    }
    var header: [record_header_size]u8 = undefined;
    std.mem.writeInt(u32, header[0..4], @truncate(packet.unix_ns / std.time.ns_per_s), .little);
    std.mem.writeInt(u32, header[4..8], @intCast(packet.unix_ns % std.time.ns_per_s), .little);
    std.mem.writeInt(u32, header[8..12], @intCast(packet.bytes.len), .little);
    std.mem.writeInt(u32, header[12..16], packet.size, .little);
    store.append(slot, &header);
    store.append(slot, packet.bytes);
    slot.packet_count += 1;
}

/// Frees the boot's blocks and its slot.
pub fn release(store: *CaptureStore, slot: *Slot) void {
    if (slot.first != no_block) {
        store.following[slot.last] = store.first_free;
        store.first_free = slot.first;
    }
    slot.* = .{};
}

/// Iterates over the parts of the file: its header, then the blocks in order.
pub fn parts(store: *const CaptureStore, slot: *const Slot) Parts {
    return .{ .store = store, .block = slot.first, .left = slot.size };
}

pub const Parts = struct {
    store: *const CaptureStore,
    block: u16,
    left: u32,

    pub fn next(iterator: *Parts) ?[]const u8 {
        if (iterator.left == 0) return null;
        assert(iterator.block != no_block);
        const size = @min(iterator.left, block_size);
        const bytes = iterator.store.blocks[iterator.block][0..size];
        iterator.left -= size;
        iterator.block = iterator.store.following[iterator.block];
        return bytes;
    }
};

pub fn fileHeader() [header_size]u8 {
    var header: [header_size]u8 = @splat(0);
    std.mem.writeInt(u32, header[0..4], magic_ns, .little);
    std.mem.writeInt(u16, header[4..6], 2, .little);
    std.mem.writeInt(u16, header[6..8], 4, .little);
    std.mem.writeInt(u32, header[16..20], snap_size, .little);
    std.mem.writeInt(u32, header[20..24], link_type_ethernet, .little);
    return header;
}

/// Takes blocks for `size` more bytes; all of them or none.
fn reserve(store: *CaptureStore, slot: *Slot, size: usize) bool {
    const have = blocksFor(slot.size);
    const missing = blocksFor(slot.size + size) - have;
    var at = store.first_free;
    for (0..missing) |_| {
        if (at == no_block) return false;
        at = store.following[at];
    }
    for (0..missing) |_| {
        const taken = store.first_free;
        store.first_free = store.following[taken];
        store.following[taken] = no_block;
        if (slot.first == no_block) slot.first = taken else store.following[slot.last] = taken;
        slot.last = taken;
    }
    return true;
}

fn blocksFor(size: usize) usize {
    return std.math.divCeil(usize, size, block_size) catch unreachable;
}

/// Writes into reserved blocks. The first unused byte lies at most two blocks before the last one,
/// since a packet is smaller than a block.
fn append(store: *CaptureStore, slot: *Slot, bytes: []const u8) void {
    assert(slot.first != no_block);
    assert(slot.last != no_block);
    var left = bytes;
    while (left.len > 0) {
        const offset = slot.size % block_size;
        const block = store.blockAt(slot, slot.size / block_size);
        const count = @min(left.len, block_size - offset);
        @memcpy(store.blocks[block][offset..][0..count], left[0..count]);
        left = left[count..];
        slot.size += @intCast(count);
    }
}

fn blockAt(store: *const CaptureStore, slot: *const Slot, index: usize) u16 {
    var at = slot.first;
    for (0..index) |_| at = store.following[at];
    return at;
}

const testing = std.testing;

fn fileOf(store: *const CaptureStore, slot: *const Slot, buffer: []u8) []u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll(&fileHeader()) catch unreachable;
    var iterator = store.parts(slot);
    while (iterator.next()) |part| writer.writeAll(part) catch unreachable;
    return writer.buffered();
}

test "packets come out in order, with their times and their own sizes, across several blocks" {
    const blocks = try testing.allocator.alloc(Block, 8);
    defer testing.allocator.free(blocks);
    var store: CaptureStore = try .init(testing.allocator, blocks, 2);
    defer store.deinit(testing.allocator);
    const one = store.slotFor(.fromRandom(@splat(1))).?;
    const other = store.slotFor(.fromRandom(@splat(2))).?;
    var bytes: [1000]u8 = undefined;
    for (0..12) |number| {
        @memset(&bytes, @intCast(number));
        const packet: Packet =
            .{ .bytes = bytes[0 .. 900 + number], .size = 1500, .unix_ns = 5_000_000_007 + number };
        store.add(if (number % 3 == 0) other else one, packet);
    }
    try testing.expectEqual(8, one.packet_count);
    var buffer: [file_size_max]u8 = undefined;
    const file = fileOf(&store, one, &buffer);
    try testing.expectEqual(header_size + one.size, file.len);
    var at: usize = header_size;
    for ([_]u8{ 1, 2, 4, 5, 7, 8, 10, 11 }) |number| {
        try testing.expectEqual(5, std.mem.readInt(u32, file[at..][0..4], .little));
        try testing.expectEqual(
            @as(u32, 7) + number,
            std.mem.readInt(u32, file[at + 4 ..][0..4], .little),
        );
        try testing.expectEqual(
            @as(u32, 900) + number,
            std.mem.readInt(u32, file[at + 8 ..][0..4], .little),
        );
        try testing.expectEqual(1500, std.mem.readInt(u32, file[at + 12 ..][0..4], .little));
        try testing.expect(
            std.mem.allEqual(u8, file[at + 16 ..][0 .. @as(usize, 900) + number], number),
        );
        at += 16 + 900 + @as(usize, number);
    }
    try testing.expectEqual(file.len, at);
}

test "a flood fills its own boot's capacity or the pool, and released blocks are used again" {
    const blocks = try testing.allocator.alloc(Block, 80);
    defer testing.allocator.free(blocks);
    var store: CaptureStore = try .init(testing.allocator, blocks, 2);
    defer store.deinit(testing.allocator);
    const bytes: [1500]u8 = @splat(7);
    const packet: Packet = .{ .bytes = &bytes, .size = 1500, .unix_ns = 0 };
    for (0..3) |_| {
        const flooded = store.slotFor(.fromRandom(@splat(1))).?;
        for (0..2000) |_| store.add(flooded, packet);
        try testing.expect(header_size + flooded.size <= file_size_max);
        const other = store.slotFor(.fromRandom(@splat(2))).?;
        for (0..2000) |_| store.add(other, packet);
        // 80 blocks less the 64 of the first.
        try testing.expect(other.packet_count > 0 and other.size <= 16 * block_size);
        try testing.expectEqual(null, store.slotFor(.fromRandom(@splat(3))));
        const small: Packet = .{ .bytes = bytes[0..1], .size = 1, .unix_ns = 0 };
        store.release(flooded);
        const many = store.slotFor(.fromRandom(@splat(4))).?;
        for (0..2000) |_| store.add(many, small);
        try testing.expectEqual(packets_max, many.packet_count);
        store.release(many);
        store.release(other);
    }
    try testing.expect(store.dropped > 0);
    try testing.expectEqual(80, chainLength(&store, store.first_free));
}

fn chainLength(store: *const CaptureStore, first: u16) usize {
    var count: usize = 0;
    var at = first;
    while (at != no_block) : (at = store.following[at]) count += 1;
    return count;
}

test "a file begins with the header of pcap in nanoseconds, little-endian, of Ethernet" {
    try testing.expectEqual([header_size]u8{
        0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0,
    }, fileHeader());
}

test "a boot keeps packets up to the size of its file, and counts each one that it drops" {
    const blocks = try testing.allocator.alloc(Block, 80);
    defer testing.allocator.free(blocks);
    var store: CaptureStore = try .init(testing.allocator, blocks, 2);
    defer store.deinit(testing.allocator);
    const slot = store.slotFor(.fromRandom(@splat(1))).?;
    const bytes: [block_size]u8 = @splat(7);
    const whole = bytes[0 .. block_size - record_header_size];
    for (0..63) |_| store.add(slot, .{ .bytes = whole, .size = block_size, .unix_ns = 0 });
    const left = file_size_max - header_size - slot.size - record_header_size;
    for ([_]usize{ left + 1, left + 2, left, 1 }, [_]u64{ 1, 2, 2, 3 }) |size, dropped| {
        store.add(slot, .{ .bytes = bytes[0..size], .size = block_size, .unix_ns = 0 });
        try testing.expectEqual(dropped, store.dropped);
    }
    try testing.expectEqual(file_size_max, header_size + slot.size);
}

test "packets take as many blocks as their bytes need, all of them or none" {
    var blocks: [3]Block = undefined;
    var store: CaptureStore = try .init(testing.allocator, &blocks, 2);
    defer store.deinit(testing.allocator);
    const bytes: [2 * block_size]u8 = @splat(7);
    const one = store.slotFor(.fromRandom(@splat(1))).?;
    const other = store.slotFor(.fromRandom(@splat(2))).?;
    // Just a block, with the record's header.
    const whole = bytes[0 .. block_size - record_header_size];
    store.add(one, .{ .bytes = whole, .size = block_size, .unix_ns = 0 });
    try testing.expectEqual(1, chainLength(&store, one.first));
    try testing.expectEqual(2, chainLength(&store, store.first_free));
    store.add(other, .{ .bytes = whole, .size = block_size, .unix_ns = 0 });
    // A byte more needs two, of which one is left: it stays free.
    const larger = bytes[0 .. block_size - record_header_size + 1];
    store.add(other, .{ .bytes = larger, .size = 2 * block_size, .unix_ns = 0 });
    try testing.expectEqual(1, store.dropped);
    try testing.expectEqual(1, chainLength(&store, store.first_free));
    store.add(one, .{ .bytes = bytes[0..1], .size = 1, .unix_ns = 0 });
    try testing.expectEqual(1, store.dropped);
    try testing.expectEqual(2, chainLength(&store, one.first));
    var buffer: [file_size_max]u8 = undefined;
    const file = fileOf(&store, one, &buffer);
    try testing.expectEqual(header_size + block_size + record_header_size + 1, file.len);
    try testing.expectEqual(7, file[file.len - 1]);
}

test "a boot in use is found by its device's address, and no free slot is" {
    var blocks: [2]Block = undefined;
    var store: CaptureStore = try .init(testing.allocator, &blocks, 3);
    defer store.deinit(testing.allocator);
    const ip: base.Ip4 = .init(10, 0, 0, 7);
    try testing.expectEqual(null, store.findByIp(ip));
    const one = store.slotFor(.fromRandom(@splat(1))).?;
    const other = store.slotFor(.fromRandom(@splat(2))).?;
    one.ip = .init(10, 0, 0, 8);
    other.ip = ip;
    try testing.expectEqual(other, store.findByIp(ip).?);
    store.slots[2].ip = .init(10, 0, 0, 9);
    try testing.expectEqual(null, store.findByIp(.init(10, 0, 0, 9)));
}

test "a store that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var blocks: [2]Block = undefined;
            var store: CaptureStore = try .init(gpa, &blocks, 2);
            store.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}
