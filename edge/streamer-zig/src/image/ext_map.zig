//! Finds the blocks of a file: extent trees of ext4, direct and indirect blocks of ext2 and ext3,
//! and small files inside their inode.

const std = @import("std");
const assert = std.debug.assert;
const ext_module = @import("ext.zig");
const volume_module = @import("volume.zig");
const int = volume_module.int;
const Ext = ext_module.Ext;
const Inode = ext_module.Inode;
const Error = ext_module.InodeError;

/// Four levels reach every block that a 32-bit number can count; deeper trees are not made.
const depth_max = 5;
const extent_size = 12;
const extent_magic = 0xf30a;
const direct_count = 12;

/// Consecutive blocks of a file that are contiguous on the disk, or a hole that reads as zeros.
const Run = struct {
    /// Block of the file.
    first: u64,
    count: u64,
    /// Block of the file system; null for a hole.
    on_disk: ?u64,
};

/// The content of an inode. It caches the last run, so a sequential read looks each run up once.
pub const File = struct {
    ext: *const Ext,
    inode: *const Inode,
    run: Run = .{ .first = 0, .count = 0, .on_disk = null },

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(file: *File, buffer: []u8, offset: u64) Error!void {
        const inode = file.inode;
        if (buffer.len > inode.size or offset > inode.size - buffer.len) return error.BeyondTheEnd;
        if (inode.flags & Inode.flag_encrypted != 0) return error.Encrypted;
        if (inode.isInline()) return file.readInline(buffer, offset);
        if (inode.isFastLink()) {
            @memcpy(buffer, inode.blocks[@intCast(offset)..][0..buffer.len]);
            return;
        }
        const block_size = file.ext.block_size;
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            const block = at / block_size;
            if (block < file.run.first or
                block - file.run.first >= file.run.count) file.run = try find(
                file.ext,
                inode,
                block,
            );
            assert(block >= file.run.first and block - file.run.first < file.run.count);
            const within = at - file.run.first * block_size;
            const left = std.math.mul(u64, file.run.count, block_size) catch std.math.maxInt(u64);
            const part = buffer[filled..][0..@intCast(@min(buffer.len - filled, left - within))];
            if (file.run.on_disk) |first| {
                try file.ext.read(part, first * block_size + within);
            } else @memset(part, 0);
            filled += part.len;
        }
    }

    fn readInline(file: *File, buffer: []u8, offset: u64) Error!void {
        const inode = file.inode;
        const front = inode.blocks.len;
        if (inode.size > front + @as(u64, inode.tail.size)) return error.Corrupt;
        const begin: usize = @intCast(offset);
        const in_front = if (begin < front) @min(buffer.len, front - begin) else 0;
        if (in_front > 0) @memcpy(buffer[0..in_front], inode.blocks[begin..][0..in_front]);
        const rest = buffer[in_front..];
        if (rest.len > 0) try file.ext.read(rest, inode.tail.at + (begin + in_front - front));
    }
};

fn find(ext: *const Ext, inode: *const Inode, block: u64) Error!Run {
    if (inode.flags & Inode.flag_extents != 0) return findExtent(ext, inode, block);
    return findIndirect(ext, inode, block);
}

/// Checks that the block is within the file system.
fn checked(ext: *const Ext, block: u64, count: u64) Error!u64 {
    if (block == 0 or count > ext.blocks or block > ext.blocks - count) return error.Corrupt;
    return block;
}

fn findExtent(ext: *const Ext, inode: *const Inode, block: u64) Error!Run {
    if (block > std.math.maxInt(u32)) return error.Corrupt;
    var node_block: ?u64 = null;
    var depth_wanted: ?u16 = null;
    // First block of the file that belongs to another entry of a node above.
    var limit: u64 = 1 << 32;
    for (0..depth_max + 1) |_| {
        var entries = try Entries.open(ext, inode, node_block);
        if (entries.depth > depth_max) return error.Corrupt;
        if (depth_wanted) |wanted| if (entries.depth != wanted) return error.Corrupt;
        const place = try entries.search(@intCast(block));
        if (place.next) |next| limit = @min(limit, next);
        if (limit <= block) return error.Corrupt;
        const entry = place.entry orelse {
            // Blocks before the first entry are a hole.
            return .{ .first = block, .count = limit - block, .on_disk = null };
        };
        if (entries.depth == 0) return ofExtent(ext, &entry, block, limit);
        node_block = try checked(ext, int(u32, &entry, 4) | @as(u64, int(u16, &entry, 8)) << 32, 1);
        depth_wanted = entries.depth - 1;
    }
    return error.Corrupt;
}

fn ofExtent(ext: *const Ext, entry: *const [extent_size]u8, block: u64, limit: u64) Error!Run {
    const first: u64 = int(u32, entry, 0);
    const stored = int(u16, entry, 4);
    // Above 32768: allocated and never written.
    const is_written = stored <= 1 << 15;
    const count: u64 = if (is_written) stored else stored - (1 << 15);
    const on_disk = int(u32, entry, 8) | @as(u64, int(u16, entry, 6)) << 32;
    if (count == 0) return error.Corrupt;
    _ = try checked(ext, on_disk, count);
    if (block >= first + count) return .{ .first = block, .count = limit - block, .on_disk = null };
    return .{ .first = first, .count = count, .on_disk = if (is_written) on_disk else null };
}

const Entry = [extent_size]u8;

/// The entries of one node: in the inode, or in a block, which is read in parts.
const Entries = struct {
    ext: *const Ext,
    inode: *const Inode,
    block: ?u64,
    count: u32,
    depth: u16,

    fn open(ext: *const Ext, inode: *const Inode, block: ?u64) Error!Entries {
        var entries: Entries = .{
            .ext = ext,
            .inode = inode,
            .block = block,
            .count = 0,
            .depth = 0,
        };
        const header = try entries.get(0);
        if (int(u16, &header, 0) != extent_magic) return error.Corrupt;
        const node_size = if (block == null) inode.blocks.len else ext.block_size;
        entries.count = int(u16, &header, 2);
        entries.depth = int(u16, &header, 6);
        if (entries.count > node_size / extent_size - 1) return error.Corrupt;
        return entries;
    }

    /// Entry 0 is the header.
    fn get(entries: *const Entries, index: u32) Error!Entry {
        const at = @as(u64, index) * extent_size;
        const block = entries.block orelse
            return entries.inode.blocks[@intCast(at)..][0..extent_size].*;
        var entry: Entry = undefined;
        try entries.ext.read(&entry, block * entries.ext.block_size + at);
        return entry;
    }

    /// Finds the last entry that does not start after `block`, and the start of the next one.
    /// Unordered entries lead to a wrong block, never outside.
    fn search(entries: *const Entries, block: u32) Error!struct { entry: ?Entry, next: ?u32 } {
        var low: u32 = 0;
        var high: u32 = entries.count;
        var found: ?Entry = null;
        var next: ?u32 = null;
        while (low < high) {
            const middle = low + (high - low) / 2;
            const entry = try entries.get(middle + 1);
            const first = int(u32, &entry, 0);
            if (first <= block) {
                found = entry;
                low = middle + 1;
            } else {
                next = first;
                high = middle;
            }
        }
        return .{ .entry = found, .next = next };
    }
};

/// Block numbers examined at once to find contiguous runs.
const numbers_max = 256;

fn findIndirect(ext: *const Ext, inode: *const Inode, block: u64) Error!Run {
    if (block < direct_count) return runOf(
        ext,
        inode.blocks[@intCast(block * 4) .. direct_count * 4],
        block,
    );
    const per: u64 = ext.block_size / 4;
    var rest = block - direct_count;
    var span: u64 = 1;
    for (0..3) |level| {
        span *= per;
        if (rest >= span) {
            rest -= span;
            continue;
        }
        var at: u64 = int(u32, &inode.blocks, (direct_count + level) * 4);
        while (true) {
            // A hole: no blocks below.
            if (at == 0) return .{ .first = block, .count = span - rest, .on_disk = null };
            _ = try checked(ext, at, 1);
            span /= per;
            const index = rest / span;
            rest %= span;
            const begin = at * ext.block_size + index * 4;
            if (span == 1) {
                var numbers: [numbers_max * 4]u8 = undefined;
                const left: usize = @intCast(per - index);
                const kept = numbers[0 .. @as(usize, @min(numbers_max, left)) * 4];
                try ext.read(kept, begin);
                return runOf(ext, kept, block);
            }
            var number: [4]u8 = undefined;
            try ext.read(&number, begin);
            at = int(u32, &number, 0);
        }
    }
    return error.Corrupt;
}

/// Counts the blocks that are contiguous, or all holes.
fn runOf(ext: *const Ext, numbers: []const u8, first: u64) Error!Run {
    const on_disk: u64 = int(u32, numbers, 0);
    var count: u64 = 1;
    while (count * 4 < numbers.len) : (count += 1) {
        const number: u64 = int(u32, numbers, @intCast(count * 4));
        if (number != if (on_disk == 0) 0 else on_disk + count) break;
    }
    if (on_disk == 0) return .{ .first = first, .count = count, .on_disk = null };
    return .{ .first = first, .count = count, .on_disk = try checked(ext, on_disk, count) };
}
