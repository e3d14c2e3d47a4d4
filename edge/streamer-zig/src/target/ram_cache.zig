//! The write cache in memory (`device_ram_overflow`): a file in memory as long as the disk, and a
//! map of the sectors that were written there. Writes that do not fit go to the edge. Both outlive
//! the process that uses them, so the next one continues with them.
//!
//! A page once allocated stays in the write cache: its content is always newer than the edge's. So
//! requests need no order beyond the one in which they arrive.

const std = @import("std");
const linux = std.os.linux;
const host = @import("host");
const sys = host.sys;
const assert = std.debug.assert;

pub const sector_size = 512;
pub const page_size = 4096;
/// Default share of the machine's memory.
const percent_default = 50;
const size_min = 1 << 20;
/// Flags of fallocate(2).
const keep_size = 1;
const punch_hole = 2;

pub const RamCache = @This();

fd: i32,
disk_size: u64,
limit_pages: u64,
shared: *Shared,
/// A byte for each page, with a bit for each of its sectors that was written here; a page
/// without any takes no memory.
map: []u8,

/// Beside the map, for later processes.
const Shared = extern struct {
    used_pages: u64 align(page_size) = 0,
    rest: [page_size - 8]u8 = undefined,
};

pub const Error = sys.Error;

/// For this process and all that it will fork. Memory is taken as it is written.
pub fn init(disk_size: u64, limit_bytes: u64) Error!RamCache {
    const fd: i32 =
        @intCast(try sys.check(linux.memfd_create("bootfarm-write-cache", linux.MFD.CLOEXEC)));
    errdefer sys.close(fd);
    _ = try sys.check(linux.ftruncate(fd, @intCast(disk_size)));
    const pages: usize = @intCast(std.mem.alignForward(u64, disk_size, page_size) / page_size);
    const size = @sizeOf(Shared) + std.mem.alignForward(usize, pages, page_size);
    const flags: linux.MAP = .{ .TYPE = .SHARED, .ANONYMOUS = true, .NORESERVE = true };
    const address =
        try sys.check(linux.mmap(null, size, .{ .READ = true, .WRITE = true }, flags, -1, 0));
    const bytes: [*]align(page_size) u8 = @ptrFromInt(address);
    return .{
        .fd = fd,
        .disk_size = disk_size,
        .limit_pages = limit_bytes / page_size,
        .shared = @ptrCast(bytes),
        .map = bytes[@sizeOf(Shared)..][0..pages],
    };
}

pub fn deinit(cache: *RamCache) void {
    const bytes: [*]align(page_size) u8 = @ptrCast(cache.shared);
    _ = linux.munmap(
        bytes,
        @sizeOf(Shared) + std.mem.alignForward(usize, cache.map.len, page_size),
    );
    sys.close(cache.fd);
    cache.* = undefined;
}

pub const Range = struct { offset: u64, length: u32 };

/// Writes what fits into memory; returns the range that the edge must take, whole pages except
/// at the ends. It may overlap what was taken, which is harmless. Multiples of 512.
pub fn write(cache: *RamCache, bytes: []const u8, offset: u64) Error!?Range {
    var rest: ?Range = null;
    var at = offset;
    const end = offset + bytes.len;
    while (at < end) {
        const page: usize = @intCast(at / page_size);
        const page_end = @min(end, (page + 1) * @as(u64, page_size));
        const part = bytes[@intCast(at - offset)..@intCast(page_end - offset)];
        if (try cache.takePage(page)) {
            try cache.put(part, at);
            cache.map[page] |= sectorsOf(at, page_end);
        } else {
            const begin = if (rest) |known| known.offset else at;
            rest = .{ .offset = begin, .length = @intCast(page_end - begin) };
        }
        at = page_end;
    }
    return rest;
}

/// Makes the range read as zeros here and frees its memory; the edge does the same with the
/// rest.
pub fn discard(cache: *RamCache, offset: u64, length: u64) Error!void {
    const zeros: [page_size]u8 = @splat(0);
    var at = offset;
    const end = offset + length;
    while (at < end) {
        const page: usize = @intCast(at / page_size);
        const page_end = @min(end, (page + 1) * @as(u64, page_size));
        defer at = page_end;
        if (cache.map[page] == 0) continue;
        if (page_end - at == page_size) {
            _ = try sys.check(
                linux.fallocate(cache.fd, punch_hole | keep_size, @intCast(at), page_size),
            );
        } else try cache.put(zeros[0..@intCast(page_end - at)], at);
        cache.map[page] |= sectorsOf(at, page_end);
    }
}

/// Returns whether the whole range is here: the edge need not be asked.
pub fn hasAll(cache: *const RamCache, offset: u64, length: u64) bool {
    var at = offset;
    while (at < offset + length) : (at += sector_size) if (!cache.has(at)) return false;
    return true;
}

/// Returns whether a part of the range is here; later writes to it go here.
pub fn ownsPage(cache: *const RamCache, page: usize) bool {
    return cache.map[page] != 0;
}

/// Copies what is here over what the edge returned.
pub fn lay(cache: *const RamCache, bytes: []u8, offset: u64) Error!void {
    var at: usize = 0;
    while (at < bytes.len) {
        var until = at;
        while (until < bytes.len and cache.has(offset + until)) until += sector_size;
        if (until > at) try cache.get(bytes[at..until], offset + at);
        at = if (until > at) until else at + sector_size;
    }
}

pub fn usedBytes(cache: *const RamCache) u64 {
    return @min(cache.shared.used_pages, cache.limit_pages) * page_size;
}

pub fn sizeBytes(cache: *const RamCache) u64 {
    return cache.limit_pages * page_size;
}

fn has(cache: *const RamCache, at: u64) bool {
    return cache.map[@intCast(at / page_size)] & sectorsOf(at, at + sector_size) != 0;
}

/// Returns false if there is no memory for it. A process that ends in between has counted the
/// page without using it.
fn takePage(cache: *RamCache, page: usize) Error!bool {
    if (cache.map[page] != 0) return true;
    if (cache.shared.used_pages >= cache.limit_pages) return false;
    cache.shared.used_pages += 1;
    return true;
}

fn put(cache: *RamCache, bytes: []const u8, offset: u64) Error!void {
    var done: usize = 0;
    while (done < bytes.len)
        done += try sys.check(
            linux.pwrite(cache.fd, bytes[done..].ptr, bytes.len - done, @intCast(offset + done)),
        );
}

fn get(cache: *const RamCache, bytes: []u8, offset: u64) Error!void {
    var done: usize = 0;
    while (done < bytes.len) {
        const count = try sys.check(
            linux.pread(cache.fd, bytes[done..].ptr, bytes.len - done, @intCast(offset + done)),
        );
        assert(count > 0); // Within the file.
        done += count;
    }
}

/// Bits of the sectors from `begin` to `end`, within one page.
fn sectorsOf(begin: u64, end: u64) u8 {
    const first: u4 = @intCast(begin % page_size / sector_size);
    const count: u4 = @intCast((end - begin) / sector_size);
    return @truncate(((@as(u16, 1) << count) - 1) << first);
}

/// `words` of the kernel's command line: bootfarm.overlay=SIZE or PERCENT%, as for a write cache in
/// RAM alone.
pub fn limitOf(words: []const u8, memory_bytes: u64) u64 {
    var said: []const u8 = "";
    var iterator = std.mem.tokenizeAny(u8, words, " \t\r\n");
    while (iterator.next()) |word| if (std.mem.cutPrefix(u8, word, "bootfarm.overlay=")) |value| {
        said = value;
    };
    const wanted = parseLimit(said, memory_bytes) orelse memory_bytes / 100 * percent_default;
    return @max(size_min, @min(wanted, memory_bytes));
}

fn parseLimit(text: []const u8, memory_bytes: u64) ?u64 {
    if (text.len == 0) return null;
    if (std.mem.cutSuffix(u8, text, "%")) |number| {
        const percent = std.fmt.parseInt(u7, number, 10) catch return null;
        return memory_bytes / 100 * @min(percent, 100);
    }
    const shift: u6 = switch (std.ascii.toLower(text[text.len - 1])) {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        else => 0,
    };
    const digits = if (shift == 0) text else text[0 .. text.len - 1];
    const number = std.fmt.parseInt(u32, digits, 10) catch return null;
    return @as(u64, number) << shift;
}

/// This machine's memory in bytes.
pub fn memoryBytes() u64 {
    var info: linux.Sysinfo = undefined;
    if (linux.errno(linux.sysinfo(&info)) != .SUCCESS) return 0;
    return @as(u64, info.totalram) * info.mem_unit;
}

const testing = std.testing;

test "reads return the last write, wherever it is stored, for any order of writes and discards" {
    const sectors = 200;
    const size = sectors * sector_size;
    for ([_]u64{ 0, 1, 7, 12, 25 }) |pages| {
        var cache: RamCache = try .init(size, pages * page_size);
        defer cache.deinit();
        var prng: std.Random.DefaultPrng = .init(pages);
        const random = prng.random();
        var expected: [size]u8 = @splat('b');
        // The edge's content: the version, and the writes that went there.
        var edge: [size]u8 = @splat('b');
        for (0..4000) |turn| {
            const first = random.uintLessThan(u32, sectors);
            const count = random.intRangeAtMost(u32, 1, @min(40, sectors - first));
            const offset, const length = .{
                @as(usize, first) * sector_size,
                @as(usize, count) * sector_size,
            };
            switch (random.uintLessThan(u8, 8)) {
                0 => {
                    try cache.discard(offset, length);
                    @memset(edge[offset..][0..length], 0);
                    @memset(expected[offset..][0..length], 0);
                },
                1...5 => {
                    const bytes = expected[offset..][0..length];
                    for (bytes, 0..) |*byte, index| byte.* = @truncate(turn +% index / sector_size);
                    if (try cache.write(bytes, offset)) |rest| {
                        try testing.expect(
                            rest.offset >= offset and rest.offset + rest.length <= offset + length,
                        );
                        const begin: usize = @intCast(rest.offset);
                        @memcpy(edge[begin..][0..rest.length], expected[begin..][0..rest.length]);
                    }
                },
                else => {
                    var buffer: [40 * sector_size]u8 = undefined;
                    const bytes = buffer[0..length];
                    // The edge is not asked if all of it is here.
                    if (cache.hasAll(offset, length))
                        @memset(bytes, 'x')
                    else
                        @memcpy(bytes, edge[offset..][0..length]);
                    try cache.lay(bytes, offset);
                    try testing.expectEqualSlices(u8, expected[offset..][0..length], bytes);
                },
            }
            try testing.expect(cache.usedBytes() <= pages * page_size);
        }
        // The last page of this disk is whole: everything that fits is here.
        try testing.expectEqual(pages * page_size, cache.usedBytes());
    }
}

test "another process continues with the writes, and memory is freed" {
    var cache: RamCache = try .init(64 << 10, 32 << 10);
    defer cache.deinit();
    const pid = try sys.check(linux.fork());
    if (pid == 0) {
        const bytes: [2 * page_size]u8 = @splat('c');
        _ = cache.write(&bytes, page_size) catch linux.exit_group(1);
        linux.exit_group(0);
    }
    var status: i32 = 0;
    _ = linux.waitpid(@intCast(pid), &status, 0);
    try testing.expectEqual(2 * page_size, cache.usedBytes());
    var buffer: [4 * page_size]u8 = @splat('b');
    try cache.lay(&buffer, 0);
    try testing.expectEqual('b', buffer[page_size - 1]);
    try testing.expectEqual('c', buffer[page_size]);
    try testing.expectEqual('b', buffer[3 * page_size]);
    try cache.discard(page_size, 2 * page_size);
    var stat: linux.Statx = undefined;
    _ = try sys.check(
        linux.statx(cache.fd, "", linux.AT.EMPTY_PATH, linux.STATX.BASIC_STATS, &stat),
    );
    try testing.expectEqual(0, stat.blocks);
    try cache.lay(&buffer, 0);
    try testing.expectEqual(0, buffer[page_size]);
}

test "the command line sets the limit; the default is half of the memory" {
    const gib = 1 << 30;
    for ([_]struct { []const u8, u64 }{
        .{ "quiet", gib / 100 * 50 },
        .{ "quiet bootfarm.overlay=64M", 64 << 20 },
        .{ "bootfarm.overlay=1G bootfarm.overlay=10%", gib / 100 * 10 },
        .{ "bootfarm.overlay=9G", gib },
        .{ "bootfarm.overlay=1k", size_min },
        .{ "bootfarm.overlay=much", gib / 100 * 50 },
    }) |case| try testing.expectEqual(case[1], limitOf(case[0], gib));
}
