//! Finds damaged blocks of a version, and puts the right bytes in their places
//! (docs/decisions/0080-repair-from-other-edges.md); unit_repair.zig does that for packed ones. A
//! location has one content for ever, which the signed tree above names by its hash: so writing it
//! again is right for every version that shares it, changes nothing that a reader may have in
//! memory, and leaves a damaged block damaged if it is interrupted. Bytes with another hash are
//! never written.

const std = @import("std");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const Files = @import("files/files.zig");
const node_module = @import("tree/node.zig");
const simulated = @import("simulated.zig");
const tree_walk = @import("tree/walk.zig");
const UnitRepair = @import("unit_repair.zig");
const VersionReader = @import("version_reader.zig");
const assert = std.debug.assert;

const Entry = block.Entry;

/// A block or a node whose bytes differ from its hash, or cannot be read.
pub const Damage = struct {
    /// Null for a block.
    level: ?u8,
    /// Of the block on the disk, or of the node among those of its level.
    index: u64,
    entry: Entry,
};

/// The disk was not to blame: what is read next may be found sound.
pub const FindError = error{ReadFailed};

/// Reads blocks from `first` up to before `end`, and the nodes above them, from the disk; returns
/// the first damage.
///
/// @param units memory to read packed units
pub fn find(
    reader: *const VersionReader,
    units: *UnitRepair,
    first: u64,
    end: u64,
) FindError!?Damage {
    assert(first <= end and end <= block.blockCount(reader.disk_size));
    // The unit that it has is from an earlier time.
    units.location = .none;
    var index = first;
    while (index < end) {
        var entry = reader.root;
        var level = reader.root_level;
        var node: node_module.Node = undefined;
        const is_there = while (!entry.isZeros()) : (level -= 1) {
            const below = node_module.blocksBelow(level);
            tree_walk.load(reader.reading.nodes, &entry, level, &node) catch
                return .{ .level = level, .index = index / below, .entry = entry };
            if (level == 0) break true;
            entry = node.entry(@intCast(index / (below / node_module.fanout) % node_module.fanout));
        } else false;
        const leaf_end = @min(end, (index / node_module.fanout + 1) * node_module.fanout);
        if (is_there) for (index..@intCast(leaf_end)) |each| {
            const child = node.entry(each % node_module.fanout);
            if (child.isZeros()) continue;
            const is_sound = if (child.location.is_packed)
                try isSoundInUnit(reader.reading.data, units, &child)
            else
                try isSound(reader.reading.data, &child);
            if (!is_sound) return .{ .level = null, .index = each, .entry = child };
        };
        index = leaf_end;
    }
    return null;
}

fn isSoundInUnit(data: *FileSet, units: *UnitRepair, entry: *const Entry) FindError!bool {
    if (!units.location.eql(entry.location.unit())) try units.read(data, entry.location);
    return units.isSound(entry);
}

fn isSound(data: *FileSet, entry: *const Entry) FindError!bool {
    var bytes: block.Block = undefined;
    const is_whole = data.read(entry.location, 0, &bytes) catch |err| switch (err) {
        error.NotFound, error.DiskFailed => return false,
        error.Exists,
        error.NoSpace,
        error.ReadOnly,
        error.Denied,
        error.TooManyFiles,
        => return error.ReadFailed,
    };
    return is_whole and std.mem.eql(u8, &block.hashOf(&bytes), &entry.hash);
}

/// `Wrong`: these are not the bytes of the block. `Locked`: the file is cut short, and another
/// process appends to it.
pub const WriteError = Files.Error || error{ Wrong, Locked };

/// Writes a block that is not packed in its place; it is durable afterwards.
pub fn writeBlock(data: *FileSet, entry: *const Entry, bytes: *const block.Block) WriteError!void {
    assert(!entry.isZeros() and !entry.location.is_packed);
    const is_right = std.mem.eql(u8, &block.hashOf(bytes), &entry.hash);
    if (!is_right and !simulated.has(.repair_unchecked)) return error.Wrong;
    var name: Files.Name = undefined;
    const files = data.files;
    const handle = try files.open(data.nameOf(entry.location.file, &name), .write);
    defer files.close(handle);
    const offset = entry.location.offset();
    if (try files.size(handle) < offset + block.block_size) {
        // An appender takes the size for the end of what is in use.
        if (!try files.tryLock(handle, true)) return error.Locked;
    }
    const at = if (simulated.has(.repair_elsewhere)) offset +| block.block_size else offset;
    try files.write(handle, bytes, at);
    try files.sync(handle);
}

const testing = std.testing;
const Appender = @import("files/appender.zig");
const TestVersion = @import("test_version.zig");
const TreeBuilder = @import("tree/builder.zig");

/// Blocks 0, 3 and 205 of a disk of 206 blocks; the others are zeros.
fn fill(_: *TestVersion, data: *Appender, builder: *TreeBuilder) !void {
    for ([_]u64{ 0, 3, 205 }) |index| {
        const bytes: block.Block = @splat(@intCast(index + 1));
        try builder.put(index, .{
            .hash = block.hashOf(&bytes),
            .location = try data.append(&bytes),
        });
    }
}

fn findIn(version: *TestVersion, first: u64, end: u64) !?Damage {
    return find(&version.reader, version.repairing, first, end);
}

fn cut(version: *TestVersion, name: []const u8, size: u64) !void {
    const files = version.on.files();
    const handle = try files.open(name, .write);
    defer files.close(handle);
    try files.setSize(handle, size);
}

test "a damaged block is found, takes only its own bytes, and is sound afterwards" {
    var version: TestVersion = undefined;
    try version.init(206, fill);
    defer version.deinit();
    try testing.expectEqual(null, try findIn(&version, 0, 206));
    try version.overwrite("extents/000001", 2 * block.block_size + 77, "x");
    try testing.expectEqual(null, try findIn(&version, 0, 205));
    const damage = (try findIn(&version, 1, 206)).?;
    try testing.expectEqual(null, damage.level);
    try testing.expectEqual(205, damage.index);
    var bytes: block.Block = @splat(206);
    bytes[9] = 1;
    try testing.expectError(error.Wrong, writeBlock(&version.data, &damage.entry, &bytes));
    try testing.expect((try findIn(&version, 205, 206)) != null);
    bytes[9] = 206;
    try writeBlock(&version.data, &damage.entry, &bytes);
    try testing.expectEqual(null, try findIn(&version, 0, 206));
}

test "blocks of a file that was cut short are written back, but not beside an appender" {
    var version: TestVersion = undefined;
    try version.init(206, fill);
    defer version.deinit();
    try cut(&version, "extents/000001", block.block_size + 5);
    const damage = (try findIn(&version, 0, 206)).?;
    try testing.expectEqual(3, damage.index);
    const bytes: block.Block = @splat(4);
    {
        const files = version.on.files();
        const handle = try files.open("extents/000001", .write);
        defer files.close(handle);
        try testing.expect(try files.tryLock(handle, true));
        try testing.expectError(error.Locked, writeBlock(&version.data, &damage.entry, &bytes));
    }
    try writeBlock(&version.data, &damage.entry, &bytes);
    try testing.expectEqual(205, (try findIn(&version, 0, 206)).?.index);
}

test "a damaged node is found by its level and index, and a missing file is damage" {
    var version: TestVersion = undefined;
    try version.init(206, fill);
    defer version.deinit();
    // The last leaf is written before the root.
    try version.overwrite("nodes/000001", block.block_size + 100, "x");
    try testing.expectEqual(null, try findIn(&version, 0, 204));
    const leaf = (try findIn(&version, 0, 206)).?;
    try testing.expectEqual(0, leaf.level.?);
    try testing.expectEqual(2, leaf.index);
    try version.overwrite("nodes/000001", 2 * block.block_size + 100, "x");
    const root = (try findIn(&version, 205, 206)).?;
    try testing.expectEqual(1, root.level.?);
    try testing.expectEqual(0, root.index);
    try version.on.files().remove("nodes/000001");
    version.nodes.forget(1);
    try testing.expectEqual(1, (try findIn(&version, 0, 1)).?.level.?);
}
