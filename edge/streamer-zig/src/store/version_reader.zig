//! Reads a version as a disk. Every block is found right (SHA-256 up to the signed root) before its first bytes leave; a block that is
//! not is an error, never bytes. How many versions lie below it makes no difference: each has a whole tree.

const std = @import("std");
const block = @import("block.zig");
const block_source = @import("block_source.zig");
const file_set = @import("file_set.zig");
const node_module = @import("node.zig");
const node_cache = @import("node_cache.zig");
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
        return .{ .context = reader, .vtable = &.{ .read = readFrom }, .size = reader.disk_size };
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
                const end = (index / node_module.fanout + 1) * node_module.fanout * block.block_size;
                const size: usize = @intCast(@min(buffer.len - done, end - at));
                @memset(buffer[done..][0..size], 0);
                done += size;
                continue;
            };
            done += try reader.readBelow(cached, buffer[done..], at);
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

    /// From the blocks of one node, as much as is wanted and lies there; returns how many bytes.
    fn readBelow(reader: *VersionReader, cached: *Cached, buffer: []u8, offset: u64) Error!usize {
        var done: usize = 0;
        var child: usize = @intCast(offset / block.block_size % node_module.fanout);
        var skip: usize = @intCast(offset % block.block_size);
        while (done < buffer.len and child < node_module.fanout) {
            const rest = buffer[done..];
            const entry = cached.node.entry(child);
            const in_block = @min(rest.len, block.block_size - skip);
            if (entry.isZeros()) {
                @memset(rest[0..in_block], 0);
                done += in_block;
                child += 1;
            } else if (cached.checked.isSet(child)) {
                const count = runOf(cached, child, rest.len + skip, true);
                const size = @min(rest.len, count * block.block_size - skip);
                try reader.readData(entry.location, skip, rest[0..size]);
                done += size;
                child += count;
            } else if (in_block == block.block_size) {
                const count = runOf(cached, child, rest.len, false);
                const blocks = rest[0 .. count * block.block_size];
                try reader.readData(entry.location, 0, blocks);
                try check(cached, child, blocks);
                done += blocks.len;
                child += count;
            } else {
                var whole: Block = undefined;
                try reader.readData(entry.location, 0, &whole);
                try check(cached, child, &whole);
                @memcpy(rest[0..in_block], whole[skip..][0..in_block]);
                done += in_block;
                child += 1;
            }
            skip = 0;
        }
        return done;
    }

    fn readData(reader: *VersionReader, location: block.Location, skip: u64, buffer: []u8) Error!void {
        const is_whole = reader.reading.data.read(location, skip, buffer) catch |err| return switch (err) {
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        };
        if (!is_whole) return error.Damaged;
    }
};

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
    const count = bytes.len / block.block_size;
    for (0..count) |index| {
        const hash = block.hashOf(bytes[index * block.block_size ..][0..block.block_size]);
        if (!std.mem.eql(u8, &hash, &cached.node.hashes[first + index])) return error.Damaged;
        cached.checked.set(first + index);
    }
}
