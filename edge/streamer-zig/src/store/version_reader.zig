//! Reads a version as a disk. Every block is found right (SHA-256 up to the signed root) before its first bytes leave; a block that is
//! not is an error, never bytes. How many versions lie below it makes no difference: each has a whole tree.

const std = @import("std");
const block = @import("block.zig");
const block_source = @import("block_source.zig");
const file_set = @import("files/file_set.zig");
const node_module = @import("tree/node.zig");
const simulated = @import("simulated.zig");
const node_cache = @import("tree/node_cache.zig");
const assert = std.debug.assert;

const Block = block.Block;
const BlockSource = block_source.BlockSource;
const Cached = node_cache.Cached;
const Entry = block.Entry;
const FileSet = file_set.FileSet;
const NodeCache = node_cache.NodeCache;

pub const Error = block_source.ReadError;

/// What versions of one store are read by: shared by all of them, used by one thread.
pub const Reading = struct {
    data: *FileSet,
    nodes: *FileSet,
    cache: *NodeCache,
};

pub const VersionReader = struct {
    reading: Reading,
    root: Entry,
    root_level: u8,
    /// Bytes.
    disk_size: u64,

    pub fn source(reader: *VersionReader) BlockSource {
        return .{ .context = reader, .vtable = &.{ .read = readFrom, .readNow = readFromNow }, .size = reader.disk_size };
    }

    fn readFromNow(context: *anyopaque, buffer: []u8, offset: u64) Error!bool {
        const reader: *VersionReader = @ptrCast(@alignCast(context));
        return reader.readNow(buffer, offset);
    }

    fn readFrom(context: *anyopaque, buffer: []u8, offset: u64) Error!void {
        const reader: *VersionReader = @ptrCast(@alignCast(context));
        return reader.read(buffer, offset);
    }

    /// Any range of bytes within the disk.
    pub fn read(reader: *VersionReader, buffer: []u8, offset: u64) Error!void {
        assert(buffer.len <= reader.disk_size and offset <= reader.disk_size - buffer.len);
        var done: usize = 0;
        while (done < buffer.len) {
            const at = offset + done;
            const index = at / block.block_size;
            const cached = try reader.leafOf(index) orelse {
                // All of what the missing node would be above reads as zeros.
                const size: usize = @intCast(@min(buffer.len - done, endOfLeaf(at) - at));
                @memset(buffer[done..][0..size], 0);
                done += size;
                continue;
            };
            done += try reader.readBelow(cached, buffer[done..], at);
        }
    }

    /// The same of what lies in memory and was checked before; false: it has to be waited for, or to be checked.
    pub fn readNow(reader: *VersionReader, buffer: []u8, offset: u64) Error!bool {
        assert(buffer.len <= reader.disk_size and offset <= reader.disk_size - buffer.len);
        var done: usize = 0;
        while (done < buffer.len) {
            const at = offset + done;
            const cached = switch (try reader.leafNow(at / block.block_size, .open_files)) {
                .waits => return false,
                .zeros => {
                    const size: usize = @intCast(@min(buffer.len - done, endOfLeaf(at) - at));
                    @memset(buffer[done..][0..size], 0);
                    done += size;
                    continue;
                },
                .node => |cached| cached,
            };
            done += try reader.readBelowNow(cached, buffer[done..], at) orelse return false;
        }
        return true;
    }

    /// A reader of the same version in another thread has just read the range, and with that checked it: it need not be checked here.
    pub fn noteChecked(reader: *VersionReader, offset: u64, size: u64) void {
        if (size == 0) return;
        var index = offset / block.block_size;
        const end = (offset + size - 1) / block.block_size + 1;
        while (index < end) {
            const leaf_end = @min(end, (index / node_module.fanout + 1) * node_module.fanout);
            const found = reader.leafNow(index, .all_files) catch return;
            if (found == .node) for (index..@intCast(leaf_end)) |each| {
                const child = each % node_module.fanout;
                const location = found.node.node.location(child);
                if (location.isNone()) continue;
                // That one has waited for its directory entry.
                _ = reader.reading.data.handleOf(location.file) catch return;
                found.node.checked.set(child);
            };
            index = leaf_end;
        }
    }

    /// The block's hash and place; for those that compare versions.
    pub fn entryOf(reader: *VersionReader, index: u64) node_cache.Error!Entry {
        const cached = try reader.leafOf(index) orelse return .zeros;
        return cached.node.entry(@intCast(index % node_module.fanout));
    }

    /// The node of level 0 that is above a block; null: there are zeros.
    fn leafOf(reader: *VersionReader, index: u64) node_cache.Error!?*Cached {
        var entry = reader.root;
        var level = reader.root_level;
        while (true) : (level -= 1) {
            if (entry.isZeros()) return null;
            const cached = try reader.reading.cache.get(reader.reading.nodes, &entry, level);
            if (level == 0) return cached;
            const child = index / node_module.blocksBelow(level - 1) % node_module.fanout;
            entry = cached.node.entry(@intCast(child));
        }
    }

    const Leaf = union(enum) { zeros, node: *Cached, waits };

    fn leafNow(reader: *VersionReader, index: u64, which: enum { open_files, all_files }) node_cache.Error!Leaf {
        var entry = reader.root;
        var level = reader.root_level;
        const nodes = reader.reading.nodes;
        while (true) : (level -= 1) {
            if (entry.isZeros()) return .zeros;
            if (which == .all_files) _ = nodes.handleOf(entry.location.file) catch return .waits;
            const cached = try reader.reading.cache.getNow(nodes, &entry, level) orelse return .waits;
            if (level == 0) return .{ .node = cached };
            const child = index / node_module.blocksBelow(level - 1) % node_module.fanout;
            entry = cached.node.entry(@intCast(child));
        }
    }

    /// As `readBelow`; null: it has to be waited for, or to be checked.
    fn readBelowNow(reader: *VersionReader, cached: *Cached, buffer: []u8, offset: u64) Error!?usize {
        var done: usize = 0;
        var child: usize = @intCast(offset / block.block_size % node_module.fanout);
        var skip: usize = @intCast(offset % block.block_size);
        while (done < buffer.len and child < node_module.fanout) {
            const rest = buffer[done..];
            const location = cached.node.location(child);
            const blocks = if (location.isNone()) 1 else if (cached.checked.isSet(child)) runOf(cached, child, rest.len + skip, true) else return null;
            const size = @min(rest.len, blocks * block.block_size - skip);
            if (location.isNone()) {
                @memset(rest[0..size], 0);
            } else {
                const is_read = reader.reading.data.readNow(location, skip, rest[0..size]) catch return null;
                if (!is_read) return null;
            }
            done += size;
            child += blocks;
            skip = 0;
        }
        return done;
    }

    /// From the blocks of one node, as much as is wanted and lies there; returns how many bytes.
    fn readBelow(reader: *VersionReader, cached: *Cached, buffer: []u8, offset: u64) Error!usize {
        var pieces: [pieces_max]Piece = undefined;
        var count: usize = 0;
        var done: usize = 0;
        var child: usize = @intCast(offset / block.block_size % node_module.fanout);
        var skip: usize = @intCast(offset % block.block_size);
        while (done < buffer.len and child < node_module.fanout and count < pieces_max) {
            const rest = buffer[done..];
            const in_block = @min(rest.len, block.block_size - skip);
            const location = cached.node.location(child);
            if (location.isNone()) {
                @memset(rest[0..in_block], 0);
                done += in_block;
                child += 1;
            } else if (cached.checked.isSet(child) or in_block == block.block_size) {
                const is_checked = cached.checked.isSet(child);
                const blocks = runOf(cached, child, if (is_checked) rest.len + skip else @min(rest.len, unchecked_size_max), is_checked);
                const size = @min(rest.len, blocks * block.block_size - skip);
                pieces[count] = .{ .location = location, .child = child, .skip = skip, .bytes = rest[0..size], .is_checked = is_checked };
                count += 1;
                done += size;
                child += blocks;
            } else {
                try reader.readPart(cached, child, rest[0..in_block], skip);
                done += in_block;
                child += 1;
            }
            skip = 0;
        }
        try reader.readPieces(cached, pieces[0..count]);
        return done;
    }

    /// A part of a block that has to be checked whole.
    fn readPart(reader: *VersionReader, cached: *Cached, child: usize, wanted: []u8, skip: usize) Error!void {
        var whole: Block = undefined;
        try reader.readData(cached.node.location(child), 0, &whole);
        try check(cached, child, &whole);
        @memcpy(wanted, whole[skip..][0..wanted.len]);
    }

    /// What is in memory first. When one of them is not, the disk is asked for all that follow before the first of those is waited for,
    /// and it goes on while those that have come are checked.
    fn readPieces(reader: *VersionReader, cached: *Cached, pieces: []const Piece) Error!void {
        const data = reader.reading.data;
        const in_memory: usize = for (pieces, 0..) |*piece, index| {
            if (pieces.len == 1) break 0;
            if (!(data.readNow(piece.location, piece.skip, piece.bytes) catch false)) break index;
        } else pieces.len;
        if (pieces.len - in_memory > 1) prefetch(data, pieces[in_memory..]);
        for (pieces, 0..) |*piece, index| {
            if (index >= in_memory) try reader.readData(piece.location, piece.skip, piece.bytes);
            if (!piece.is_checked) try check(cached, piece.child, piece.bytes);
        }
    }

    fn readData(reader: *VersionReader, location: block.Location, skip: u64, buffer: []u8) Error!void {
        const is_whole = reader.reading.data.read(location, skip, buffer) catch |err| return switch (err) {
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        };
        if (!is_whole) return error.Damaged;
    }
};

/// Byte of the disk behind the last one that the node of level 0 above `offset` is above.
fn endOfLeaf(offset: u64) u64 {
    const leaf_size = node_module.fanout * block.block_size;
    return (offset / leaf_size + 1) * leaf_size;
}

/// Of one read, with as much as one node is above; what is left is read after them.
const pieces_max = 24;
/// So much is checked while the disk reads what follows.
const unchecked_size_max = 64 << 10;

/// Bytes that lie behind each other in one file.
const Piece = struct {
    location: block.Location,
    /// The first of its blocks in their node.
    child: usize,
    /// Bytes of the first block that are not wanted; 0 where it has to be checked.
    skip: usize,
    bytes: []u8,
    is_checked: bool,
};

/// Pieces between which so little lies in their file are asked for as one: what a disk reads in between takes less than another request.
const prefetch_gap_max = 16 * block.block_size;

fn prefetch(data: *FileSet, pieces: []const Piece) void {
    var asked: std.bit_set.Static(pieces_max) = .empty;
    for (pieces, 0..) |*first, index| {
        if (asked.isSet(index)) continue;
        const begin = first.location.offset() + first.skip;
        var end = begin + first.bytes.len;
        for (pieces[index + 1 ..], index + 1..) |*next, later| {
            const next_begin = next.location.offset() + next.skip;
            if (next.location.file != first.location.file or next_begin < end or next_begin - end > prefetch_gap_max) continue;
            end = next_begin + next.bytes.len;
            asked.set(later);
        }
        data.prefetch(first.location, first.skip, end - begin);
    }
}

/// How many blocks from `child` on lie behind each other in one file and are all checked, or all not; whole ones only where they are to
/// be checked. At least 1.
fn runOf(cached: *const Cached, child: usize, size: usize, is_checked: bool) usize {
    const wanted = if (is_checked)
        std.math.divCeil(usize, size, block.block_size) catch unreachable
    else
        size / block.block_size;
    const most = @min(wanted, node_module.fanout - child);
    assert(most > 0);
    const first = cached.node.location(child);
    for (1..most) |count| {
        if (!cached.node.location(child + count).eql(first.plus(@intCast(count)))) return count;
        if (cached.checked.isSet(child + count) != is_checked) return count;
    }
    return most;
}

fn check(cached: *Cached, first: usize, bytes: []const u8) error{Damaged}!void {
    var hashes: [unchecked_size_max / block.block_size]block.Hash = undefined;
    const found = hashes[0 .. bytes.len / block.block_size];
    block.hashAll(bytes, found);
    for (found, first..) |*hash, child| {
        const is_right = std.mem.eql(u8, hash, &cached.node.hashes[child]) or simulated.has(.block_unchecked);
        if (!is_right) return error.Damaged;
        cached.checked.set(child);
    }
}
