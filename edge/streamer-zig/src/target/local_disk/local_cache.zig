//! The write cache on a local disk, for writes that do not fit in memory. Nobody else can read it,
//! and it ends with this boot: each block of 4 KiB is sealed under a key that exists only in this
//! machine's memory, with a counter that is never reused, and its tag is in memory too
//! (`BlockMap.zig`). So a changed or outdated block on the disk is found when it is read.
//!
//! A block is written to a free slot, and its old slot is freed afterwards: at any interruption the
//! map refers to valid bytes. Data in memory is newer than data here (`RamCache`): of a page that
//! is in memory, this holds at most the zeros of an earlier discard.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const BlockMap = @import("block_map.zig");
const RamCache = @import("../ram_cache.zig");
const Entry = BlockMap.Entry;
const assert = std.debug.assert;

const Cipher = std.crypto.aead.chacha_poly.ChaCha20Poly1305;
const block_size = BlockMap.block_size;
const sector_size = BlockMap.sector_size;
const range_size_max = @import("core").target.nbd_queue.part_size_max;
/// Blocks of a range that starts within a block.
const blocks_max = range_size_max / block_size + 1;

comptime {
    assert(blocks_max == BlockMap.spare_slots);
}

/// Aligned buffer for whole blocks between the disk and the caller.
var bounce: [blocks_max * block_size]u8 align(block_size) = undefined;

pub const LocalCache = @This();

/// From the start of the partition.
fd: i32,
key: [Cipher.key_length]u8,
map: BlockMap,
ram: *const RamCache,

pub const Options = struct {
    fd: i32,
    /// Size of the partition in bytes.
    size: u64,
    /// Bytes of the partition that may be used.
    limit: ?u64,
    /// Bytes of memory that the map may take.
    memory_max: u64,
    ram: *const RamCache,
};

/// `Lost`: the disk has failed. `Damaged`: it has other bytes than were written. All of its
/// content is unreliable after either.
pub const Error = error{ Lost, Damaged };
pub const WriteResult = enum { done, full };

/// 24 bytes for a slot, and 8 for its block.
const memory_of_slot = 32;

pub fn init(options: Options) sys.Error!LocalCache {
    var key: [Cipher.key_length]u8 = undefined;
    sys.random(&key);
    const slots = @min(
        options.size / block_size,
        options.memory_max / memory_of_slot,
        std.math.maxInt(u32) - 1,
    );
    if (slots <= BlockMap.spare_slots) return error.SystemCallFailed;
    const limit = @max(1, @min(slots, (options.limit orelse options.size) / block_size));
    return .{
        .fd = options.fd,
        .key = key,
        .map = try .init(options.ram.disk_size, @intCast(slots), @intCast(limit)),
        .ram = options.ram,
    };
}

/// Called by the thread that changes it. `Full`: a part may have been written.
pub fn write(cache: *LocalCache, bytes: []const u8, offset: u64) Error!WriteResult {
    return cache.writeOrZero(bytes, .{ .offset = offset, .length = @intCast(bytes.len) });
}

/// Makes the range read as zeros, which takes space only at ends within a block. Also for pages
/// that came into memory since the request.
pub fn discard(cache: *LocalCache, offset: u64, length: u64) Error!void {
    var at = offset;
    const end = offset + length;
    while (at < end) {
        const block: usize = @intCast(at / block_size);
        const chunk_end = at + BlockMap.chunk_blocks * block_size;
        if (at % (BlockMap.chunk_blocks * block_size) == 0 and chunk_end <= end) {
            cache.map.putZeros(block / BlockMap.chunk_blocks) catch return error.Lost;
            at = chunk_end;
            continue;
        }
        const block_end = @min(end, (block + 1) * @as(u64, block_size));
        defer at = block_end;
        const sectors = sectorsOf(at, block_end);
        const entry = cache.map.get(block);
        const is_whole = at % block_size == 0 and
            (block_end % block_size == 0 or block_end == cache.ram.disk_size);
        if (is_whole or entry.slot == 0) {
            cache.map.put(block, if (is_whole) .zeros else .{ .mask = entry.mask | sectors });
            continue;
        }
        // One slot is always spare.
        const written =
            try cache.writeOrZero(null, .{ .offset = at, .length = @intCast(block_end - at) });
        assert(written == .done);
    }
}

/// Copies what is here over `bytes` of the version; what is in memory is newer, and is copied
/// over both.
pub fn lay(cache: *LocalCache, bytes: []u8, offset: u64) Error!void {
    var plan: Plan = .{};
    var blocks: Blocks = .{ .at = offset, .end = offset + bytes.len };
    while (blocks.next()) |part| {
        const entry = cache.map.get(part.block);
        if (entry.mask == 0) continue;
        if (entry.slot == 0) {
            copyMasked(bytes[@intCast(part.at - offset)..][0..part.size()], null, part, entry.mask);
            continue;
        }
        plan.add(.{ .part = part, .slot = entry.slot - 1, .mask = entry.mask });
    }
    try cache.transfer(&plan, .read);
    for (plan.slice(), 0..) |place, index| {
        const block = bounceOf(index);
        try cache.open(block, place.slot, place.part.block);
        copyMasked(
            bytes[@intCast(place.part.at - offset)..][0..place.part.size()],
            block,
            place.part,
            place.mask,
        );
    }
}

/// Returns whether a part of the range is here.
pub fn hasAny(cache: *const LocalCache, offset: u64, length: u64) bool {
    var blocks: Blocks = .{ .at = offset, .end = offset + length };
    while (blocks.next()) |part| {
        if (cache.map.get(part.block).mask != 0) return true;
    }
    return false;
}

/// Returns whether all of the range is here or in memory: the edge need not be asked.
pub fn hasAll(cache: *const LocalCache, offset: u64, length: u64) bool {
    var blocks: Blocks = .{ .at = offset, .end = offset + length };
    while (blocks.next()) |part| {
        const mask = cache.map.get(part.block).mask;
        var at = part.at;
        while (at < part.end) : (at += sector_size) {
            if (mask & sectorsOf(at, at + sector_size) == 0 and
                !cache.ram.hasAll(at, sector_size)) return false;
        }
    }
    return true;
}

pub fn usedBytes(cache: *const LocalCache) u64 {
    return cache.map.usedSlots() * block_size;
}

pub fn sizeBytes(cache: *const LocalCache) u64 {
    return @as(u64, cache.map.limit_slots) * block_size;
}

const Range = struct { offset: u64, length: u32 };

/// Null bytes mean zeros.
fn writeOrZero(cache: *LocalCache, bytes: ?[]const u8, range: Range) Error!WriteResult {
    var plan: Plan = .{};
    var result: WriteResult = .done;
    var blocks: Blocks = .{ .at = range.offset, .end = range.offset + range.length };
    while (blocks.next()) |part| {
        if (cache.ram.ownsPage(part.block)) continue;
        const entry = cache.map.get(part.block);
        const slot = cache.map.take(entry.slot == 0) orelse {
            result = .full;
            break;
        };
        const block = bounceOf(plan.count);
        if (part.size() < block_size) try cache.readBlock(block, entry, part.block);
        const own = block[@intCast(part.at % block_size)..][0..part.size()];
        if (bytes) |all|
            @memcpy(own, all[@intCast(part.at - range.offset)..][0..own.len])
        else
            @memset(own, 0);
        cache.seal(block, slot, part.block);
        plan.add(
            .{ .part = part, .slot = slot, .mask = entry.mask | sectorsOf(part.at, part.end) },
        );
    }
    try cache.transfer(&plan, .write);
    for (plan.slice()) |place|
        cache.map.put(place.part.block, .{ .slot = place.slot + 1, .mask = place.mask });
    return result;
}

/// The current content: zeros without a slot.
fn readBlock(cache: *LocalCache, block: *[block_size]u8, entry: Entry, index: usize) Error!void {
    if (entry.slot == 0) return @memset(block, 0);
    try readAll(cache.fd, block, @as(u64, entry.slot - 1) * block_size);
    try cache.open(block, entry.slot - 1, index);
}

fn seal(cache: *LocalCache, block: *[block_size]u8, slot: u32, index: usize) void {
    const counter = cache.map.nextCounter();
    const kept = &cache.map.view.seals[slot];
    kept.counter = counter;
    Cipher.encrypt(
        block,
        &kept.tag,
        block,
        &std.mem.toBytes(@as(u64, index)),
        nonceOf(counter),
        cache.key,
    );
}

fn open(cache: *LocalCache, block: *[block_size]u8, slot: u32, index: usize) Error!void {
    const kept = cache.map.view.seals[slot];
    Cipher.decrypt(
        block,
        block,
        kept.tag,
        &std.mem.toBytes(@as(u64, index)),
        nonceOf(kept.counter),
        cache.key,
    ) catch
        return error.Damaged;
}

const Direction = enum { read, write };

/// Transfers between `bounce` and the disk; consecutive slots at once.
fn transfer(cache: *LocalCache, plan: *const Plan, direction: Direction) Error!void {
    const places = plan.slice();
    var first: usize = 0;
    while (first < places.len) {
        var end = first + 1;
        while (end < places.len and places[end].slot == places[end - 1].slot + 1) end += 1;
        const bytes = bounce[first * block_size .. end * block_size];
        const at = @as(u64, places[first].slot) * block_size;
        switch (direction) {
            .read => try readAll(cache.fd, bytes, at),
            .write => try writeAll(cache.fd, bytes, at),
        }
        first = end;
    }
}

/// Slots of the blocks in `bounce`.
const Plan = struct {
    places: [blocks_max]PartLocation = undefined,
    count: usize = 0,

    const PartLocation = struct { part: Part, slot: u32, mask: u8 };

    fn add(plan: *Plan, place: PartLocation) void {
        plan.places[plan.count] = place;
        plan.count += 1;
    }

    fn slice(plan: *const Plan) []const PartLocation {
        return plan.places[0..plan.count];
    }
};

/// The part of a range within one block.
const Part = struct {
    block: usize,
    at: u64,
    end: u64,

    fn size(part: Part) usize {
        return @intCast(part.end - part.at);
    }
};

const Blocks = struct {
    at: u64,
    end: u64,

    fn next(blocks: *Blocks) ?Part {
        if (blocks.at >= blocks.end) return null;
        const block: usize = @intCast(blocks.at / block_size);
        const part: Part = .{
            .block = block,
            .at = blocks.at,
            .end = @min(blocks.end, (block + 1) * @as(u64, block_size)),
        };
        blocks.at = part.end;
        return part;
    }
};

/// `to` is the part; `block` its whole block, null for zeros.
fn copyMasked(to: []u8, block: ?*const [block_size]u8, part: Part, mask: u8) void {
    var at = part.at;
    while (at < part.end) : (at += sector_size) {
        if (mask & sectorsOf(at, at + sector_size) == 0) continue;
        const sector = to[@intCast(at - part.at)..][0..sector_size];
        if (block) |bytes| @memcpy(
            sector,
            bytes[@intCast(at % block_size)..][0..sector_size],
        ) else @memset(sector, 0);
    }
}

/// Bits of the sectors from `begin` to `end`, within one block.
fn sectorsOf(begin: u64, end: u64) u8 {
    const first: u4 = @intCast(begin % block_size / sector_size);
    const count: u4 = @intCast((end - begin) / sector_size);
    return @truncate(((@as(u16, 1) << count) - 1) << first);
}

fn bounceOf(index: usize) *[block_size]u8 {
    return bounce[index * block_size ..][0..block_size];
}

fn nonceOf(counter: u64) [Cipher.nonce_length]u8 {
    var nonce: [Cipher.nonce_length]u8 = @splat(0);
    std.mem.writeInt(u64, nonce[0..8], counter, .little);
    return nonce;
}

fn readAll(fd: i32, bytes: []u8, at: u64) LocalCache.Error!void {
    const size = sys.readAt(fd, bytes, at) catch return error.Lost;
    if (size < bytes.len) return error.Lost;
}

fn writeAll(fd: i32, bytes: []const u8, at: u64) LocalCache.Error!void {
    var done: usize = 0;
    while (done < bytes.len) {
        const rest = bytes[done..];
        const size = sys.check(
            linux.pwrite(fd, rest.ptr, rest.len, @intCast(at + done)),
        ) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return error.Lost,
        };
        if (size == 0) return error.Lost;
        done += size;
    }
}

test {
    _ = @import("local_cache_test.zig");
}
