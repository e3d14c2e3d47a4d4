//! A disk whose pages that were read last are in memory: whoever walks a file system reads the same
//! tables and directories again and again, some bytes at a time.

const std = @import("std");
const store = @import("store");
const Allocator = std.mem.Allocator;
const BlockSource = store.BlockSource;
const ReadError = store.block_source.ReadError;

pub const CachedSource = @This();

below: *const BlockSource,
/// The number of the page that is in each slot, or `none`.
numbers: []u64,
bytes: []u8,

const page_size = 16 << 10;
/// 8 MiB.
const pages_max = 512;
const none = std.math.maxInt(u64);

pub fn init(gpa: Allocator, below: *const BlockSource) Allocator.Error!CachedSource {
    const numbers = try gpa.alloc(u64, pages_max);
    errdefer gpa.free(numbers);
    @memset(numbers, none);
    return .{
        .below = below,
        .numbers = numbers,
        .bytes = try gpa.alloc(u8, pages_max * page_size),
    };
}

pub fn deinit(cached: *CachedSource, gpa: Allocator) void {
    gpa.free(cached.numbers);
    gpa.free(cached.bytes);
    cached.* = undefined;
}

/// The cache must not move while the source is read.
pub fn source(cached: *CachedSource) BlockSource {
    return .{ .context = cached, .vtable = &.{ .read = read }, .size = cached.below.size };
}

fn read(context: *anyopaque, buffer: []u8, offset: u64) ReadError!void {
    const cached: *CachedSource = @ptrCast(@alignCast(context));
    if (buffer.len > page_size) return cached.below.read(buffer, offset);
    var filled: usize = 0;
    while (filled < buffer.len) {
        const at = offset + filled;
        const page = try cached.pageAt(at / page_size);
        const within: usize = @intCast(at % page_size);
        const part = @min(buffer.len - filled, page.len - within);
        @memcpy(buffer[filled..][0..part], page[within..][0..part]);
        filled += part;
    }
}

fn pageAt(cached: *CachedSource, number: u64) ReadError![]const u8 {
    const slot: usize = @intCast(number % pages_max);
    const first = number * page_size;
    const size: usize = @intCast(@min(page_size, cached.below.size - first));
    const page = cached.bytes[slot * page_size ..][0..size];
    if (cached.numbers[slot] == number) return page;
    cached.numbers[slot] = none;
    try cached.below.read(page, first);
    cached.numbers[slot] = number;
    return page;
}

const testing = std.testing;
const MemoryDisk = @import("../volume.zig").MemoryDisk;

test "a cached disk reads like the disk, up to its end" {
    const bytes = try testing.allocator.alloc(u8, 3 * page_size + 512);
    defer testing.allocator.free(bytes);
    var prng: std.Random.DefaultPrng = .init(1);
    prng.random().bytes(bytes);
    var memory: MemoryDisk = .{ .bytes = bytes };
    const below = memory.source();
    var cached: CachedSource = try .init(testing.allocator, &below);
    defer cached.deinit(testing.allocator);
    const disk = cached.source();
    var buffer: [2 * page_size]u8 = undefined;
    for (0..2000) |_| {
        const size = prng.random().intRangeAtMost(usize, 1, buffer.len);
        const at = prng.random().uintAtMost(u64, bytes.len - size);
        try disk.read(buffer[0..size], at);
        try testing.expectEqualSlices(u8, bytes[@intCast(at)..][0..size], buffer[0..size]);
    }
    try testing.expectError(error.BeyondTheEnd, disk.read(buffer[0..2], bytes.len - 1));
}
