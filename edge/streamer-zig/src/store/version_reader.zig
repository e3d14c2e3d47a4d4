//! Reads a version as a disk. Every block is checked (SHA-256 up to the signed root) before its
//! first byte is returned; a wrong block is an error, never bytes. The number of versions below
//! makes no difference, since each version has a complete tree.

const std = @import("std");
const block = @import("block.zig");
const BlockSource = @import("block_source.zig");
const FileSet = @import("files/file_set.zig");
const node_module = @import("tree/node.zig");
const simulated = @import("simulated.zig");
const unit = @import("unit.zig");
const NodeCache = @import("tree/node_cache.zig");
const UnitCache = @import("unit_cache.zig");
const assert = std.debug.assert;

const Block = block.Block;
const CachedNode = NodeCache.CachedNode;
const Entry = block.Entry;

pub const Error = BlockSource.ReadError;

/// Shared by all readers of one store, and used by one thread.
pub const ReadContext = struct {
    data: *FileSet,
    nodes: *FileSet,
    cache: *NodeCache,
    units: *UnitCache,
};

pub const VersionReader = @This();

reading: ReadContext,
root: Entry,
root_level: u8,
/// Bytes.
disk_size: u64,

pub fn source(reader: *VersionReader) BlockSource {
    return .{
        .context = reader,
        .vtable = &.{ .read = readFrom, .readNow = readFromNow },
        .size = reader.disk_size,
    };
}

fn readFromNow(context: *anyopaque, buffer: []u8, offset: u64) Error!bool {
    const reader: *VersionReader = @ptrCast(@alignCast(context));
    return reader.readNow(buffer, offset);
}

fn readFrom(context: *anyopaque, buffer: []u8, offset: u64) Error!void {
    const reader: *VersionReader = @ptrCast(@alignCast(context));
    return reader.read(buffer, offset);
}

/// Reads any range of bytes within the disk.
pub fn read(reader: *VersionReader, buffer: []u8, offset: u64) Error!void {
    assert(buffer.len <= reader.disk_size and offset <= reader.disk_size - buffer.len);
    var done: usize = 0;
    while (done < buffer.len) {
        const at = offset + done;
        const index = at / block.block_size;
        const cached = try reader.leafOf(index) orelse {
            // Everything below a missing node reads as zeros.
            const size: usize = @intCast(@min(buffer.len - done, endOfLeaf(at) - at));
            @memset(buffer[done..][0..size], 0);
            done += size;
            continue;
        };
        done += try reader.readBelow(cached, buffer[done..], at);
    }
}

/// Units that `readNow` unpacks: 128 KiB, for which a loop with other work has the time.
const unpacks_now_max = 4;

/// Reads blocks that are in memory and already checked; returns false if a block must be read
/// or checked, or too much unpacked.
pub fn readNow(reader: *VersionReader, buffer: []u8, offset: u64) Error!bool {
    assert(buffer.len <= reader.disk_size and offset <= reader.disk_size - buffer.len);
    const unpacked_end = reader.reading.units.unpacked +% unpacks_now_max;
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
        done += try reader.readBelowNow(cached, buffer[done..], at, unpacked_end) orelse
            return false;
    }
    return true;
}

/// Returns the LZ4 block of 32 KiB of the disk, if they are stored as one unit whose blocks are all
/// checked and in memory; null otherwise. Unpacks nothing.
///
/// @param first index of a block; a multiple of eight
pub fn packedNow(reader: *VersionReader, first: u64, into: *unit.Stored) Error!?[]const u8 {
    assert(first % unit.blocks_max == 0);
    if (first + unit.blocks_max > reader.disk_size / block.block_size) return null;
    var location: block.Location = undefined;
    var index = first;
    while (index < first + unit.blocks_max) : (index += 1) {
        const leaf = switch (try reader.leafNow(index, .open_files)) {
            .zeros, .waits => return null,
            .node => |cached| cached,
        };
        const child: usize = @intCast(index % node_module.fanout);
        const found = leaf.node.location(child);
        if (!found.is_packed or !leaf.checked.isSet(child)) return null;
        if (index == first) location = found.unit();
        const place = found.place();
        if (!found.unit().eql(location) or place.index != index - first) return null;
    }
    if (location.place().last != unit.blocks_max - 1 or !unit.isPossible(location)) return null;
    const stored = into[0..location.storedSize()];
    const is_read = reader.reading.data.readNow(location, 0, stored) catch return null;
    return if (is_read) try unit.packedBytes(stored, unit.blocks_max) else null;
}

/// Marks a range as checked: a reader of the same version in another thread has just read it.
pub fn markChecked(reader: *VersionReader, offset: u64, size: u64) void {
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
            // The other reader has waited for the directory entry.
            _ = reader.reading.data.handleOf(location.file) catch return;
            found.node.checked.set(child);
        };
        index = leaf_end;
    }
}

/// Returns the first block at or after `from` that is not zeros, or null; skips empty subtrees.
pub fn nextBlock(reader: *VersionReader, from: u64, block_count: u64) Error!?u64 {
    var index = from;
    search: while (index < block_count) {
        var entry = reader.root;
        var level = reader.root_level;
        while (!entry.isZeros()) : (level -= 1) {
            const cached = try reader.reading.cache.get(reader.reading.nodes, &entry, level);
            const below: u64 = if (level == 0) 1 else node_module.blocksBelow(level - 1);
            var child = index / below % node_module.fanout;
            while (cached.node.location(@intCast(child)).isNone()) {
                // Restart at the next child, or at the next node.
                index = (index / below + 1) * below;
                child += 1;
                if (child == node_module.fanout or index >= block_count) continue :search;
            }
            if (level == 0) return index;
            entry = cached.node.entry(@intCast(child));
        }
        return null;
    }
    return null;
}

/// Returns the block's hash and location, to compare versions.
pub fn entryOf(reader: *VersionReader, index: u64) NodeCache.Error!Entry {
    const cached = try reader.leafOf(index) orelse return .zeros;
    return cached.node.entry(@intCast(index % node_module.fanout));
}

/// Fills in the hashes of consecutive blocks, as far as the nodes above them are in memory; returns
/// false if one must be read.
pub fn hashesNow(reader: *VersionReader, index: u64, hashes: []block.Hash) Error!bool {
    var done: usize = 0;
    while (done < hashes.len) {
        const child: usize = @intCast((index + done) % node_module.fanout);
        const count = @min(hashes.len - done, node_module.fanout - child);
        const found = hashes[done..][0..count];
        switch (try reader.leafNow(index + done, .open_files)) {
            .waits => return false,
            .zeros => @memset(found, block.zero_hash),
            .node => |cached| @memcpy(found, cached.node.hashes[child..][0..count]),
        }
        done += count;
    }
    return true;
}

/// Fills in the hashes of consecutive blocks.
pub fn readHashes(reader: *VersionReader, index: u64, hashes: []block.Hash) Error!void {
    for (hashes, index..) |*hash, each| {
        const cached = try reader.leafOf(each);
        hash.* = if (cached) |node|
            node.node.hashes[@intCast(each % node_module.fanout)]
        else
            block.zero_hash;
    }
}

/// Returns the node of level 0 above a block, or null for zeros.
fn leafOf(reader: *VersionReader, index: u64) NodeCache.Error!?*CachedNode {
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

const Leaf = union(enum) { zeros, node: *CachedNode, waits };

fn leafNow(
    reader: *VersionReader,
    index: u64,
    which: enum { open_files, all_files },
) NodeCache.Error!Leaf {
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

/// Like `readBelow`; returns null if a block must be read or checked.
fn readBelowNow(
    reader: *VersionReader,
    cached: *CachedNode,
    buffer: []u8,
    offset: u64,
    unpacked_end: u64,
) Error!?usize {
    var done: usize = 0;
    var child: usize = @intCast(offset / block.block_size % node_module.fanout);
    var skip: usize = @intCast(offset % block.block_size);
    while (done < buffer.len and child < node_module.fanout) {
        const rest = buffer[done..];
        const location = cached.node.location(child);
        const blocks = if (location.isNone()) 1 else if (cached.checked.isSet(child)) runOf(
            cached,
            child,
            rest.len + skip,
            true,
        ) else return null;
        const size = @min(rest.len, blocks * block.block_size - skip);
        if (location.isNone()) {
            @memset(rest[0..size], 0);
        } else if (location.is_packed) {
            const raw = try reader.reading.units.getNow(
                reader.reading.data,
                location,
                blocks,
                unpacked_end,
            ) orelse return null;
            @memcpy(rest[0..size], raw[skip..][0..size]);
        } else {
            const is_read = reader.reading.data.readNow(location, skip, rest[0..size]) catch
                return null;
            if (!is_read) return null;
        }
        done += size;
        child += blocks;
        skip = 0;
    }
    return done;
}

/// Reads consecutive blocks of one node; returns the number of bytes read.
fn readBelow(reader: *VersionReader, cached: *CachedNode, buffer: []u8, offset: u64) Error!usize {
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
        } else if (location.is_packed) {
            const blocks = unitRunOf(cached, child, rest.len + skip);
            const size = @min(rest.len, blocks * block.block_size - skip);
            pieces[count] = .{
                .location = location,
                .child = child,
                .skip = skip,
                .bytes = rest[0..size],
                // Each block is checked in its unit.
                .is_checked = true,
            };
            count += 1;
            done += size;
            child += blocks;
        } else if (cached.checked.isSet(child) or in_block == block.block_size) {
            const is_checked = cached.checked.isSet(child);
            const blocks = runOf(
                cached,
                child,
                if (is_checked) rest.len + skip else @min(rest.len, unchecked_size_max),
                is_checked,
            );
            const size = @min(rest.len, blocks * block.block_size - skip);
            pieces[count] = .{
                .location = location,
                .child = child,
                .skip = skip,
                .bytes = rest[0..size],
                .is_checked = is_checked,
            };
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

/// Reads part of a block that must be checked as a whole.
fn readPart(
    reader: *VersionReader,
    cached: *CachedNode,
    child: usize,
    wanted: []u8,
    skip: usize,
) Error!void {
    var whole: Block = undefined;
    try reader.readData(cached.node.location(child), 0, &whole);
    try check(cached, child, &whole);
    @memcpy(wanted, whole[skip..][0..wanted.len]);
}

/// Reads what is in memory first. At the first miss, it prefetches all later pieces before it
/// waits, so that the disk works while the blocks that have arrived are checked.
fn readPieces(reader: *VersionReader, cached: *CachedNode, pieces: []const Piece) Error!void {
    const in_memory: usize = for (pieces, 0..) |*piece, index| {
        if (pieces.len == 1) break 0;
        if (!try reader.readPieceNow(cached, piece)) break index;
    } else pieces.len;
    if (pieces.len - in_memory > 1) prefetch(reader.reading.data, pieces[in_memory..]);
    for (pieces, 0..) |*piece, index| {
        if (piece.location.is_packed) {
            // Those in memory were copied.
            if (index < in_memory) continue;
            const units = reader.reading.units;
            const raw = try units.get(reader.reading.data, piece.location, piece.blocks());
            try reader.copyFromUnit(cached, piece, raw);
            continue;
        }
        if (index >= in_memory) try reader.readData(piece.location, piece.skip, piece.bytes);
        if (!piece.is_checked) try check(cached, piece.child, piece.bytes);
    }
}

/// Returns false if the disk is needed.
fn readPieceNow(reader: *VersionReader, cached: *CachedNode, piece: *const Piece) Error!bool {
    const data = reader.reading.data;
    if (!piece.location.is_packed)
        return data.readNow(piece.location, piece.skip, piece.bytes) catch false;
    const units = reader.reading.units;
    const raw = try units.getNow(data, piece.location, piece.blocks(), null) orelse return false;
    try reader.copyFromUnit(cached, piece, raw);
    return true;
}

/// Checks the blocks of a piece that were not checked yet, and copies what is wanted of them.
fn copyFromUnit(
    reader: *VersionReader,
    cached: *CachedNode,
    piece: *const Piece,
    raw: []const u8,
) error{Damaged}!void {
    errdefer reader.reading.units.forget(piece.location);
    const count = piece.blocks();
    assert(raw.len == count * block.block_size);
    var begin: usize = 0;
    for (0..count + 1) |index| {
        if (index < count and !cached.checked.isSet(piece.child + index)) continue;
        const run = raw[begin * block.block_size .. index * block.block_size];
        if (run.len > 0) try check(cached, piece.child + begin, run);
        begin = index + 1;
    }
    @memcpy(piece.bytes, raw[piece.skip..][0..piece.bytes.len]);
}

fn readData(reader: *VersionReader, location: block.Location, skip: u64, buffer: []u8) Error!void {
    const is_whole = reader.reading.data.read(location, skip, buffer) catch |err|
        return switch (err) {
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        };
    if (!is_whole) return error.Damaged;
}

/// Byte offset of the disk after the last block below the same node of level 0.
fn endOfLeaf(offset: u64) u64 {
    const leaf_size = node_module.fanout * block.block_size;
    return (offset / leaf_size + 1) * leaf_size;
}

/// Pieces of one read below one node; the caller reads the rest afterwards.
const pieces_max = 24;
/// Bytes checked while the disk reads the next ones.
const unchecked_size_max = 64 << 10;

/// Consecutive bytes of one file, or of the blocks of one unit.
const Piece = struct {
    location: block.Location,
    /// Index of its first block in the node.
    child: usize,
    /// Bytes to skip in the first block; 0 if the block must be checked and is not packed.
    skip: usize,
    bytes: []u8,
    is_checked: bool,

    fn blocks(piece: *const Piece) usize {
        return std.math.divCeil(usize, piece.skip + piece.bytes.len, block.block_size) catch
            unreachable;
    }

    /// Bytes of the file to read.
    fn begin(piece: *const Piece) u64 {
        return piece.location.offset() + if (piece.location.is_packed) 0 else piece.skip;
    }

    fn end(piece: *const Piece) u64 {
        return piece.begin() +
            if (piece.location.is_packed) piece.location.storedSize() else piece.bytes.len;
    }
};

/// Pieces closer together than this in their file are read as one: reading the gap takes a disk
/// less time than another request.
const prefetch_gap_max = 16 * block.block_size;

fn prefetch(data: *FileSet, pieces: []const Piece) void {
    var asked: std.bit_set.Static(pieces_max) = .empty;
    for (pieces, 0..) |*first, index| {
        if (asked.isSet(index)) continue;
        const begin = first.begin();
        var end = first.end();
        for (pieces[index + 1 ..], index + 1..) |*next, later| {
            const next_begin = next.begin();
            if (next.location.file != first.location.file or next_begin < end or
                next_begin - end > prefetch_gap_max) continue;
            end = next.end();
            asked.set(later);
        }
        data.prefetch(first.location, begin - first.location.offset(), end - begin);
    }
}

/// Counts the consecutive blocks from `child` on that are contiguous in one file and all checked,
/// or all unchecked (then whole blocks only). At least 1.
fn runOf(cached: *const CachedNode, child: usize, size: usize, is_checked: bool) usize {
    const wanted = if (is_checked) std.math.divCeil(usize, size, block.block_size) catch
        unreachable else size / block.block_size;
    const most = @min(wanted, node_module.fanout - child);
    assert(most > 0);
    const first = cached.node.location(child);
    if (first.is_packed) {
        const blocks = unitRunOf(cached, child, size);
        for (1..blocks) |count| if (!cached.checked.isSet(child + count)) return count;
        return blocks;
    }
    for (1..most) |count| {
        if (!cached.node.location(child + count).eql(first.plus(@intCast(count)))) return count;
        if (cached.checked.isSet(child + count) != is_checked) return count;
    }
    return most;
}

/// Counts the consecutive blocks from a packed one on that follow each other in its unit, for so
/// many bytes. At least 1.
fn unitRunOf(cached: *const CachedNode, child: usize, size: usize) usize {
    const wanted = std.math.divCeil(usize, size, block.block_size) catch unreachable;
    const most = @min(wanted, node_module.fanout - child);
    const first = cached.node.location(child);
    var place = first.place();
    for (1..most) |count| {
        if (place.index == place.last) return count;
        place.index += 1;
        const expected: block.Location =
            .{ .file = first.file, .block = @bitCast(place), .is_packed = true };
        if (!cached.node.location(child + count).eql(expected)) return count;
    }
    return most;
}

fn check(cached: *CachedNode, first: usize, bytes: []const u8) error{Damaged}!void {
    var hashes: [unchecked_size_max / block.block_size]block.Hash = undefined;
    const found = hashes[0 .. bytes.len / block.block_size];
    block.hashAll(bytes, found);
    for (found, first..) |*hash, child| {
        const is_right = std.mem.eql(u8, hash, &cached.node.hashes[child]) or
            simulated.has(.block_unchecked) or
            (simulated.has(.unit_unchecked) and cached.node.location(child).is_packed);
        if (!is_right) return error.Damaged;
        cached.checked.set(child);
    }
}
