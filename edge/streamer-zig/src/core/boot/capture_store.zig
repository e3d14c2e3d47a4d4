//! The packets of boots in progress in the form of a pcap file
//! (https://www.ietf.org/archive/id/draft-gharris-opsawg-pcap-01.html, times in ns). Bounded per
//! boot and in total: records lie in blocks of one pool, so that many small captures or a few large
//! ones fit. Pure: the caller passes memory, times and bytes.

const std = @import("std");
const base = @import("base");
const BlockChains = @import("block_chains.zig");
const assert = std.debug.assert;

pub const CaptureStore = @This();

chains: BlockChains,
slots: []Slot,
/// Packets dropped because the capacity was used up.
dropped: u64 = 0,

pub const block_size = BlockChains.block_size;
pub const Block = BlockChains.Block;
/// 16 MiB.
pub const blocks_default = 4096;
pub const slots_default = 1024;
pub const packets_max = 512;
/// Size of a whole file (UPLINK.md).
pub const file_size_max = 256 * 1024;
pub const header_size = 24;
const record_header_size = 16;
const snap_size = 65535;
const link_type_ethernet = 1;
const magic_ns = 0xa1b23c4d;

pub const Slot = struct {
    /// Zero: free.
    boot_id: base.Uuid = .zero,
    /// Address of the boot's device, for frames of another segment.
    ip: ?base.Ip4 = null,
    /// All records.
    chain: BlockChains.Chain = .{},
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

/// `blocks` has at most 65534 entries and stays the caller's; it is not touched before it is used.
pub fn init(
    gpa: std.mem.Allocator,
    blocks: []Block,
    slots_max: u16,
) error{OutOfMemory}!CaptureStore {
    var chains: BlockChains = try .init(gpa, blocks);
    errdefer chains.deinit(gpa);
    const slots = try gpa.alloc(Slot, slots_max);
    @memset(slots, .{});
    return .{ .chains = chains, .slots = slots };
}

pub fn deinit(store: *CaptureStore, gpa: std.mem.Allocator) void {
    store.chains.deinit(gpa);
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
    assert(slot.chain.size == 0);
    slot.* = .{ .boot_id = boot_id };
    return slot;
}

/// Keeps a packet if it fits; otherwise it is dropped and counted.
pub fn add(store: *CaptureStore, slot: *Slot, packet: Packet) void {
    assert(!slot.boot_id.eql(.zero));
    assert(packet.bytes.len <= packet.size);
    const size = record_header_size + packet.bytes.len;
    var header: [record_header_size]u8 = undefined;
    std.mem.writeInt(u32, header[0..4], @truncate(packet.unix_ns / std.time.ns_per_s), .little);
    std.mem.writeInt(u32, header[4..8], @intCast(packet.unix_ns % std.time.ns_per_s), .little);
    std.mem.writeInt(u32, header[8..12], @intCast(packet.bytes.len), .little);
    std.mem.writeInt(u32, header[12..16], packet.size, .little);
    const fits =
        slot.packet_count < packets_max and header_size + slot.chain.size + size <= file_size_max;
    if (!fits or !store.chains.append(&slot.chain, &header, packet.bytes)) {
        store.dropped += 1;
        return;
    }
    slot.packet_count += 1;
}

/// Frees the boot's blocks and its slot.
pub fn release(store: *CaptureStore, slot: *Slot) void {
    store.chains.release(&slot.chain);
    slot.* = .{};
}

/// Iterates over what follows the header of the file.
pub fn parts(store: *const CaptureStore, slot: *const Slot) BlockChains.Parts {
    return store.chains.parts(&slot.chain);
}

pub fn fileHeader() [header_size]u8 {
    var header: [header_size]u8 = @splat(0);
    std.mem.writeInt(u32, header[0..4], magic_ns, .little);
    std.mem.writeInt(u16, header[4..6], 2, .little);
    std.mem.writeInt(u16, header[6..8], 4, .little);
    std.mem.writeInt(u32, header[16..20], snap_size, .little);
    std.mem.writeInt(u32, header[20..24], link_type_ethernet, .little);
    return header;
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
    try testing.expectEqual(header_size + one.chain.size, file.len);
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
        try testing.expect(header_size + flooded.chain.size <= file_size_max);
        const other = store.slotFor(.fromRandom(@splat(2))).?;
        for (0..2000) |_| store.add(other, packet);
        // 80 blocks less the 64 of the first.
        try testing.expect(other.packet_count > 0 and other.chain.size <= 16 * block_size);
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
    try testing.expectEqual(80, store.chains.freeCount());
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
    const left = file_size_max - header_size - slot.chain.size - record_header_size;
    for ([_]usize{ left + 1, left + 2, left, 1 }, [_]u64{ 1, 2, 2, 3 }) |size, dropped| {
        store.add(slot, .{ .bytes = bytes[0..size], .size = block_size, .unix_ns = 0 });
        try testing.expectEqual(dropped, store.dropped);
    }
    try testing.expectEqual(file_size_max, header_size + slot.chain.size);
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
    try testing.expectEqual(1, store.chains.blockCount(&one.chain));
    try testing.expectEqual(2, store.chains.freeCount());
    store.add(other, .{ .bytes = whole, .size = block_size, .unix_ns = 0 });
    // A byte more needs two, of which one is left: it stays free.
    const larger = bytes[0 .. block_size - record_header_size + 1];
    store.add(other, .{ .bytes = larger, .size = 2 * block_size, .unix_ns = 0 });
    try testing.expectEqual(1, store.dropped);
    try testing.expectEqual(1, store.chains.freeCount());
    store.add(one, .{ .bytes = bytes[0..1], .size = 1, .unix_ns = 0 });
    try testing.expectEqual(1, store.dropped);
    try testing.expectEqual(2, store.chains.blockCount(&one.chain));
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
