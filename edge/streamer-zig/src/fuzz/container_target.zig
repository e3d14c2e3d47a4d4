//! Fuzzes images in other formats than raw, which are untrusted: whatever a file says, reading it
//! ends, takes bounded memory, and gives bytes or a fault. No file with a signature becomes raw.

const std = @import("std");
const image = @import("image");
const store = @import("store");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const container = image.container;
const Chain = container.Chain;
const expect = fuzz_case.expect;
const test_images = container.test_images;
const vhdx = container.test_vhdx;
const ImageSource = store.image_source.ImageSource;

/// Two windows of zstd, and what a log and packed units take.
var memory: [6 << 20]u8 = undefined;
var chain: Chain = undefined;
var small: [2][test_images.qcow2_size_max]u8 = undefined;
var large: [2][vhdx.size_max]u8 = undefined;
var is_large_made = false;
var files: [2]container.MemoryFile = undefined;
var first: [64 << 10]u8 = undefined;
var second: [64 << 10]u8 = undefined;

/// Reads per disk, and bytes of each.
const reads_max = 24;

pub fn vhd(case: *Case) Violation!bool {
    const layout = anyLayout(case);
    const is_difference = case.prng.chance(1, 2);
    const parent: ?test_images.Parent =
        if (is_difference) .{ .name = "parent", .identity = @splat(2) } else null;
    const top = test_images.vhd(&small[0], layout, 1, parent);
    const below = test_images.vhd(&small[1], anyLayout(case), 2, null);
    damage(case, top, 2600);
    // The checksums of header and copy of the footer, as a hostile file has them.
    if (case.prng.chance(3, 4)) {
        std.mem.writeInt(u32, top[512 + 36 ..][0..4], sumOf(top[512..1536], 36), .big);
        std.mem.writeInt(u32, top[64..68], sumOf(top[0..512], 64), .big);
        if (case.prng.chance(1, 2)) @memcpy(top[top.len - 512 ..], top[0..512]);
    }
    const has_signature = std.mem.startsWith(u8, top, "conectix");
    return readAll(case, cut(case, top), below, has_signature);
}

/// The complement of a sum of bytes, as a VHD has it.
fn sumOf(bytes: []const u8, at: usize) u32 {
    var sum: u32 = 0;
    for (bytes, 0..) |byte, index| sum +%= if (index / 4 == at / 4) 0 else byte;
    return ~sum;
}

pub fn qcow2(case: *Case) Violation!bool {
    const is_zstd = case.prng.chance(1, 2);
    const parent: ?[]const u8 = if (case.prng.chance(1, 2)) "parent" else null;
    const top = test_images.qcow2(&small[0], anyLayout(case), 1, parent, is_zstd);
    const below = test_images.qcow2(&small[1], anyLayout(case), 2, null, is_zstd);
    switch (case.prng.below(4)) {
        0 => damage(case, top, 112),
        1 => damage(case, top[4096..], 64),
        2 => damage(case, top[2 * 4096 ..], 64),
        else => damage(case, top[3 * 4096 ..], top.len - 3 * 4096),
    }
    return readAll(case, cut(case, top), below, std.mem.startsWith(u8, top, "QFI\xfb"));
}

pub fn vmdk(case: *Case) Violation!bool {
    const top = test_images.vmdk(&small[0], anyLayout(case), 1, case.prng.chance(1, 2));
    switch (case.prng.below(4)) {
        0 => damage(case, top, 80),
        1 => damage(case, top[512..], 160),
        2 => damage(case, top[1536..], 8),
        else => damage(case, top[2048..], top.len - 2048),
    }
    return readAll(case, cut(case, top), small[1][0..0], std.mem.startsWith(u8, top, "KDMV"));
}

const Place = struct { at: usize, size: usize };
const vhdx_places = [_]Place{
    .{ .at = 64 << 10, .size = 80 },
    .{ .at = 128 << 10, .size = 80 },
    .{ .at = 192 << 10, .size = 80 },
    .{ .at = vhdx.table_at, .size = 32 },
    .{ .at = vhdx.table_at + 4096 * 8, .size = 8 },
    .{ .at = vhdx.metadata_at, .size = 160 },
    .{ .at = vhdx.metadata_at + (64 << 10), .size = 320 },
    .{ .at = vhdx.log_at + 254 * 4096, .size = 128 },
    .{ .at = vhdx.log_at, .size = 128 },
};

pub fn vhdxFile(case: *Case) Violation!bool {
    if (!is_large_made) makeLarge();
    is_large_made = true;
    const prng = &case.prng;
    const top = &large[0];
    const Old = struct { at: usize, byte: u8 };
    var old: [8]Old = undefined;
    const count: usize = @intCast(prng.below(old.len));
    const place = prng.pick(Place, &vhdx_places);
    for (old[0..count]) |*one| {
        one.at = place.at + @as(usize, @intCast(prng.below(place.size)));
        one.byte = top[one.at];
        top[one.at] = if (prng.chance(1, 2)) case.byte() else top[one.at] ^ 1;
    }
    if (prng.chance(7, 8)) sealVhdx(top);
    const result = readAll(case, cut(case, top), &large[1], true);
    for (0..count) |index| {
        const one = &old[count - 1 - index];
        top[one.at] = one.byte;
    }
    sealVhdx(top);
    return result;
}

fn makeLarge() void {
    _ = vhdx.make(&large[1], .{ .data, .data, .absent, .zeros }, 2, null);
    const parent: test_images.Parent = .{ .name = "parent", .identity = @splat(2) };
    _ = vhdx.make(&large[0], .{ .part, .data, .part, .absent }, 1, parent);
    var table: [4096]u8 = undefined;
    @memcpy(&table, large[0][vhdx.table_at..][0..4096]);
    vhdx.log(&large[0], 254, 20, &.{
        .{ .at = vhdx.table_at, .page = null },
        .{ .at = vhdx.table_at, .page = &table },
        .{ .at = 8 << 20, .page = null },
    });
}

/// Corrects all checksums, as a hostile file has them.
fn sealVhdx(bytes: *[vhdx.size_max]u8) void {
    for ([_]Place{
        .{ .at = 64 << 10, .size = 4096 },
        .{ .at = 128 << 10, .size = 4096 },
        .{ .at = 192 << 10, .size = 64 << 10 },
    }) |place| vhdx.seal(bytes[place.at..][0..place.size]);
    // The first and the last entry of the log; the one between wraps.
    vhdx.seal(bytes[vhdx.log_at + 254 * 4096 ..][0..4096]);
    vhdx.seal(bytes[vhdx.log_at + 4096 ..][0..4096]);
}

fn anyLayout(case: *Case) test_images.Layout {
    var layout: test_images.Layout = undefined;
    for (&layout) |*block| block.* = case.prng.pick(
        test_images.Block,
        &.{ .absent, .zeros, .data, .compressed, .part },
    );
    return layout;
}

/// Changes up to eight bytes near the start: bits, and values at their limits.
fn damage(case: *Case, bytes: []u8, size: usize) void {
    const prng = &case.prng;
    // A disk without data ends with its tables.
    const limit = @min(size, bytes.len);
    if (limit == 0) return;
    for (0..@intCast(prng.below(8))) |_| {
        const at: usize = @intCast(prng.below(limit));
        bytes[at] = switch (prng.below(3)) {
            0 => bytes[at] ^ @as(u8, 1) << @intCast(prng.below(8)),
            1 => prng.pick(u8, &.{ 0, 1, 0x7f, 0x80, 0xff }),
            else => case.byte(),
        };
    }
}

/// Sometimes the file is truncated.
fn cut(case: *Case, bytes: []u8) []u8 {
    if (case.prng.chance(7, 8)) return bytes;
    return bytes[0..@intCast(case.prng.between(1, bytes.len))];
}

fn readAll(case: *Case, top: []const u8, below: []const u8, has_signature: bool) Violation!bool {
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    files = .{ .{ .bytes = top, .number = 1 }, .{ .bytes = below, .number = 2 } };
    chain.open(fixed.allocator(), files[0].source(), &.{
        .directory = .{ .context = &files, .open = openParent },
    }) catch |fault| {
        try expect(fault != error.OutOfMemory, "an image takes bounded memory");
        try expect(container.fault.sentence(fault).len > 0, "a fault has a sentence");
        return false;
    };
    defer chain.close();
    // A signature needs its bytes to be there.
    if (has_signature and top.len >= 512)
        try expect(!chain.isRaw(), "what has a signature is not raw");
    var at: u64 = 0;
    var is_whole = true;
    for (0..reads_max) |_| {
        const found = chain.nextData(at) orelse break;
        try expect(found >= at and found < chain.size(), "data is found ahead, on the disk");
        const count: usize = @intCast(@min(first.len, chain.size() - found));
        is_whole = try readPart(first[0..count], found) and is_whole;
        at = found + count;
        if (at >= chain.size()) break;
    }
    for (0..4) |_| {
        const place = case.prng.below(chain.size());
        const count: usize = @intCast(@min(1 + case.prng.below(8192), chain.size() - place));
        is_whole = try readPart(first[0..count], place) and is_whole;
    }
    return is_whole;
}

fn readPart(bytes: []u8, at: u64) Violation!bool {
    chain.read(bytes, at) catch |fault| {
        try expect(fault != error.OutOfMemory, "reading takes bounded memory");
        try expect(chain.faultOfRead() != null, "a fault of a read is kept");
        return false;
    };
    const again = second[0..bytes.len];
    chain.read(again, at) catch return fuzz_case.violated("a read can be repeated");
    try expect(std.mem.eql(u8, bytes, again), "a read gives the same bytes again");
    return true;
}

fn openParent(
    context: *anyopaque,
    name: []const u8,
) error{ ParentMissing, ParentUnreadable }!ImageSource {
    const both: *[2]container.MemoryFile = @ptrCast(@alignCast(context));
    if (both[1].bytes.len == 0) return error.ParentMissing;
    if (!std.mem.eql(u8, name, "parent")) return error.ParentMissing;
    return both[1].source();
}
