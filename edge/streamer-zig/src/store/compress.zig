//! Packs the versions of a store again, in the background: what was sealed, what an earlier release
//! has stored, and what an import has packed quickly. A version keeps its root, its bytes and its
//! manifest but for the place of the root.
//!
//! All versions are rewritten together, one window of their disks after the other, those that
//! boots read first: a block that several versions have at the same place of their disks is packed
//! once, and they share it afterwards, as they share nodes. Each window is one change of the store,
//! complete in itself: a killed process has packed less. Others may change the store between two
//! windows.
//!
//! A version that somebody reads stays as it is for them: its former manifest gets another name
//! (`Change.replace`), and the garbage collection frees nothing below it until it is closed.

const std = @import("std");
const Appender = @import("files/appender.zig");
const block = @import("block.zig");
const BlockSource = @import("block_source.zig");
const lz4 = @import("codec").lz4;
const manifest_module = @import("tree/manifest.zig");
const node_module = @import("tree/node.zig");
const NodeCache = @import("tree/node_cache.zig");
const store_dir = @import("files/store_dir.zig");
const unit = @import("unit.zig");
const VersionReader = @import("version_reader.zig");
const assert = std.debug.assert;
const Uuid = @import("base").Uuid;

const Change = store_dir.Change;
const Entry = block.Entry;
const Location = block.Location;
const Manifest = manifest_module.Manifest;
const Store = store_dir.Store;

pub const Error = store_dir.Error || store_dir.VersionError || error{ OutOfMemory, ReadFailed };

/// 2 MiB: what one processor packs in an eighth of a second. Others wait for the store's lock as
/// long.
pub const window_blocks = 512;
/// Windows that can come first: those of the first 2 TiB.
const preferred_max = 1 << 20;

comptime {
    assert(window_blocks % unit.blocks_max == 0);
}

pub const Compression = @This();

gpa: std.mem.Allocator,
store: *Store,
memory: *Memory,
/// The preferred windows come first.
pass: enum { preferred, others } = .preferred,
/// Index of the first block of the next window.
next: u64 = 0,
windows_done: u64 = 0,
/// Blocks of the largest disk.
block_count: u64 = 0,
/// Bytes of blocks that were read and that were packed, and of the units that they became.
read_bytes: u64 = 0,
packed_bytes: u64 = 0,
stored_bytes: u64 = 0,

const Memory = struct {
    preferred: std.bit_set.Static(preferred_max),
    search: lz4.Search,
    table: lz4.Table,
    raw: [unit.raw_size_max]u8,
    stored: unit.Stored,
};

pub fn init(gpa: std.mem.Allocator, store: *Store) error{OutOfMemory}!Compression {
    const memory = try gpa.create(Memory);
    memory.preferred = .empty;
    return .{ .gpa = gpa, .store = store, .memory = memory };
}

pub fn deinit(compression: *Compression) void {
    compression.gpa.destroy(compression.memory);
    compression.* = undefined;
}

/// Before the first step: the window of this place of the disks comes first.
pub fn prefer(compression: *Compression, offset: u64) void {
    const index = offset / block.block_size / window_blocks;
    if (index < preferred_max) compression.memory.preferred.set(@intCast(index));
}

fn isPreferred(compression: *const Compression, first: u64) bool {
    const index = first / window_blocks;
    return index < preferred_max and compression.memory.preferred.isSet(@intCast(index));
}

/// Packs the next window that has data; returns false at the end. Holds the store's change lock
/// only as long as it runs.
pub fn step(compression: *Compression, change: *Change) Error!bool {
    assert(change.store == compression.store);
    var window: Window = .{ .compression = compression, .change = change };
    defer window.deinit();
    try window.openVersions();
    while (try window.firstBlock(compression.next)) |first| {
        window.first = first - first % window_blocks;
        compression.next = window.end();
        const is_preferred = compression.isPreferred(window.first);
        if (is_preferred != (compression.pass == .preferred)) continue;
        try window.rewrite();
        compression.windows_done += 1;
        return true;
    }
    if (compression.pass == .others) return false;
    compression.pass = .others;
    compression.next = 0;
    return true;
}

/// What a block is, and where on the disk: the same in all versions that share it.
const Key = struct { index: u64, hash: block.Hash };

const Place = struct {
    /// Where one of the versions has it.
    before: Location,
    /// Where all have it afterwards; null: each where it has it. A block moves only after it was
    /// read and found right.
    after: ?Location = null,
    /// Versions have it at several places.
    is_scattered: bool = false,
    /// It is not packed again.
    is_done: bool = false,
};

const UnitUse = struct { is_small: bool, used: u8 };

const Version = struct { manifest: Manifest, reader: VersionReader, root: Entry };

const Window = struct {
    compression: *Compression,
    change: *Change,
    first: u64 = 0,
    versions: std.ArrayList(Version) = .empty,
    places: std.AutoHashMapUnmanaged(Key, Place) = .empty,
    units: std.AutoHashMapUnmanaged(u64, UnitUse) = .empty,
    /// By the place of the node before; versions that shared one share it afterwards.
    rewritten: std.AutoHashMapUnmanaged(u64, Entry) = .empty,
    data: Appender = undefined,
    nodes: Appender = undefined,

    fn deinit(window: *Window) void {
        const gpa = window.compression.gpa;
        window.versions.deinit(gpa);
        window.places.deinit(gpa);
        window.units.deinit(gpa);
        window.rewritten.deinit(gpa);
        window.* = undefined;
    }

    fn end(window: *const Window) u64 {
        return window.first + window_blocks;
    }

    /// A version whose manifest cannot be read is left alone; others report it.
    fn openVersions(window: *Window) Error!void {
        const compression = window.compression;
        const store = compression.store;
        compression.block_count = 0;
        var id: ?Uuid = null;
        while (try store.nextVersion(id)) |found| {
            id = found;
            const manifest = store.manifestOf(found) catch |err| switch (err) {
                error.NotAManifest,
                error.TooNew,
                error.Damaged,
                error.WrongSignature,
                error.Malformed,
                error.OtherStore,
                error.OtherName,
                => continue,
                else => return err,
            };
            compression.block_count = @max(compression.block_count, manifest.blockCount());
            try window.versions.append(compression.gpa, .{
                .manifest = manifest,
                .root = manifest.root,
                .reader = .{
                    .reading = store.reading(),
                    .root = manifest.root,
                    .root_level = manifest.rootLevel(),
                    .disk_size = manifest.disk_size,
                },
            });
        }
    }

    fn firstBlock(window: *Window, from: u64) Error!?u64 {
        var least: ?u64 = null;
        for (window.versions.items) |*version| {
            const count = version.manifest.blockCount();
            if (from >= count) continue;
            // Below a damaged node nothing is packed.
            const next = version.reader.nextBlock(from, count) catch |err| switch (err) {
                error.Damaged => from,
                else => return error.ReadFailed,
            };
            const found = next orelse continue;
            least = @min(least orelse found, found);
        }
        return least;
    }

    fn rewrite(window: *Window) Error!void {
        const compression = window.compression;
        const gpa = compression.gpa;
        const store = compression.store;
        try window.change.allowUnits();
        window.data = try .init(gpa, &store.data, store.options.file_size_max);
        defer window.data.deinit(gpa);
        window.nodes = try .init(gpa, &store.nodes, store.options.file_size_max);
        defer window.nodes.deinit(gpa);
        for (window.versions.items) |*version| try window.findPlaces(version);
        try window.judgeUnits();
        for (window.versions.items) |*version| try window.pack(version);
        for (window.versions.items) |*version|
            version.root = try window.rewriteNode(&version.root, version.manifest.rootLevel(), 0);
        try window.data.sync();
        try window.nodes.sync();
        for (window.versions.items) |*version| {
            if (version.root.location.eql(version.manifest.root.location)) continue;
            version.manifest.root = version.root;
            version.manifest.has_units = true;
            try window.change.replace(&version.manifest);
        }
    }

    /// Returns null for zeros, and for what cannot be known since a node is damaged.
    fn entryOf(version: *Version, index: u64) Error!?Entry {
        if (index >= version.manifest.blockCount()) return null;
        const entry = version.reader.entryOf(index) catch |err| switch (err) {
            error.Damaged => return null,
            error.ReadFailed => return error.ReadFailed,
        };
        return if (entry.isZeros()) null else entry;
    }

    /// Collects where the blocks of the window are, and which of a unit's blocks are used.
    fn findPlaces(window: *Window, version: *Version) Error!void {
        const gpa = window.compression.gpa;
        for (window.first..window.end()) |index| {
            const entry = try entryOf(version, index) orelse continue;
            const location = entry.location;
            if (location.is_packed) {
                const found =
                    try window.units.getOrPut(gpa, @as(u64, @bitCast(location.unit())));
                if (!found.found_existing)
                    found.value_ptr.* = .{ .is_small = try window.isSmall(location), .used = 0 };
                found.value_ptr.used |= @as(u8, 1) << location.place().index;
            }
            const found = try window.places.getOrPut(gpa, .{ .index = index, .hash = entry.hash });
            if (!found.found_existing)
                found.value_ptr.* = .{ .before = location }
            else if (!found.value_ptr.before.eql(location)) found.value_ptr.is_scattered = true;
        }
    }

    fn isSmall(window: *Window, location: Location) Error!bool {
        var header: [unit.header_size]u8 = undefined;
        const is_read = window.compression.store.data.read(location, 0, &header) catch |err|
            switch (err) {
                error.NotFound => false,
                else => return err,
            };
        return is_read and unit.isSmall(&header);
    }

    /// Blocks stay in a small unit of which at least half is used.
    fn judgeUnits(window: *Window) Error!void {
        var each = window.places.valueIterator();
        while (each.next()) |place| {
            if (place.is_scattered or !place.before.is_packed) continue;
            const use = window.units.get(@as(u64, @bitCast(place.before.unit()))).?;
            const count = @as(u32, place.before.place().last) + 1;
            place.is_done = use.is_small and @as(u32, @popCount(use.used)) * 2 >= count;
        }
    }

    fn pack(window: *Window, version: *Version) Error!void {
        var first = window.first;
        while (first < window.end()) : (first += unit.blocks_max)
            try window.packUnit(version, first);
    }

    /// Packs what no other version has packed of these blocks.
    fn packUnit(window: *Window, version: *Version, first: u64) Error!void {
        const compression = window.compression;
        const memory = compression.memory;
        var places: [unit.blocks_max]*Place = undefined;
        var count: usize = 0;
        for (first..first + unit.blocks_max) |index| {
            const entry = try entryOf(version, index) orelse continue;
            const place = window.places.getPtr(.{ .index = index, .hash = entry.hash }) orelse
                continue;
            if (place.is_done or !try window.readBlock(version, index, count)) continue;
            place.is_done = true;
            places[count] = place;
            count += 1;
        }
        if (count == 0) return;
        const raw = memory.raw[0 .. count * block.block_size];
        // What does not shrink quickly is not tried for long.
        if (unit.pack(.{ .quick = &memory.table }, &memory.stored, raw) == null) return;
        const stored = unit.pack(.{ .small = &memory.search }, &memory.stored, raw) orelse return;
        const at = try window.data.appendUnit(stored);
        for (places[0..count], 0..) |place, index|
            place.after = unit.locationOf(at.file, at.sector, stored.len, count, index);
        compression.packed_bytes += raw.len;
        compression.stored_bytes += stored.len;
    }

    /// Returns false if the block is damaged: it stays as it is, and `verify` names it.
    fn readBlock(window: *Window, version: *Version, index: u64, at: usize) Error!bool {
        const compression = window.compression;
        const into = compression.memory.raw[at * block.block_size ..][0..block.block_size];
        const begin = index * block.block_size;
        const size: usize = @intCast(@min(into.len, version.manifest.disk_size - begin));
        @memset(into[size..], 0);
        compression.read_bytes += size;
        version.reader.read(into[0..size], begin) catch |err| return switch (err) {
            error.ReadFailed => error.ReadFailed,
            else => false,
        };
        return true;
    }

    /// Returns the entry of the node with the places of the window; the node itself if they are
    /// the same. At most as deep as a tree.
    fn rewriteNode(window: *Window, entry: *const Entry, level: u8, first: u64) Error!Entry {
        const is_outside =
            first >= window.end() or first + node_module.blocksBelow(level) <= window.first;
        if (entry.isZeros() or is_outside) return entry.*;
        const gpa = window.compression.gpa;
        const store = window.compression.store;
        const key: u64 = @bitCast(entry.location);
        if (window.rewritten.get(key)) |known| return known;
        var node = (store.cache.get(&store.nodes, entry, level) catch |err| switch (err) {
            error.Damaged => return entry.*,
            error.ReadFailed => return error.ReadFailed,
        }).node;
        var is_changed = false;
        for (0..node_module.fanout) |child| {
            const before = node.entry(child);
            if (before.isZeros()) continue;
            const after = if (level == 0)
                window.placeOf(first + child, &before)
            else
                try window.rewriteNode(
                    &before,
                    level - 1,
                    first + child * node_module.blocksBelow(level - 1),
                );
            if (after.location.eql(before.location)) continue;
            node.set(child, after);
            is_changed = true;
        }
        var made = entry.*;
        if (is_changed) {
            node.seal();
            assert(std.mem.eql(u8, &node.hash(), &entry.hash));
            made.location = try window.nodes.append(std.mem.asBytes(&node));
        }
        try window.rewritten.put(gpa, key, made);
        return made;
    }

    fn placeOf(window: *const Window, index: u64, entry: *const Entry) Entry {
        if (index < window.first or index >= window.end()) return entry.*;
        const place = window.places.get(.{ .index = index, .hash = entry.hash }) orelse
            return entry.*;
        return .{ .hash = entry.hash, .location = place.after orelse entry.location };
    }
};
