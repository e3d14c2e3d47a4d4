//! Makes the map of a disk: walks the directories of each file system once. Read-only; memory,
//! reads and files are bounded, and a damaged file or directory is left out, never guessed.

const std = @import("std");
const store = @import("store");
const Builder = @import("builder.zig");
const btrfs_extents = @import("btrfs_extents.zig");
const CachedSource = @import("cached_source.zig");
const Disk = @import("../disk.zig");
const ext_blocks = @import("ext_blocks.zig");
const fat_clusters = @import("fat_clusters.zig");
const file_system = @import("../file_system.zig");
const FileMap = @import("file_map.zig");
const Place = @import("place.zig");
const squashfs_blocks = @import("squashfs_blocks.zig");
const volume_module = @import("../volume.zig");
const xfs_blocks = @import("xfs_blocks.zig");
const Allocator = std.mem.Allocator;
const BlockSource = store.BlockSource;
const FileSystem = file_system.FileSystem;
const Node = file_system.Node;

pub const Error = Disk.OpenError || Builder.Error || error{
    /// Larger than a map describes.
    DiskTooLarge,
};

pub const Limits = struct {
    /// Reads of one map, most of them from memory; a Linux system of half a million files needs
    /// some ten million.
    reads: u64 = 100_000_000,
};

/// A path that Linux opens has fewer.
const depth_max = 128;

/// The caller frees the map. `gpa` also gives what the walk needs meanwhile.
pub fn mapDisk(gpa: Allocator, below: *const BlockSource, limits: Limits) Error!FileMap {
    if (below.size > FileMap.disk_size_max) return error.DiskTooLarge;
    var cached: CachedSource = try .init(gpa, below);
    defer cached.deinit(gpa);
    const source = cached.source();
    var arena: std.heap.ArenaAllocator = .init(gpa);
    defer arena.deinit();
    const disk = try arena.allocator().create(Disk);
    var builder: Builder = .init(gpa, below.size);
    defer builder.deinit();
    disk.open(arena.allocator(), &source) catch |reason| switch (reason) {
        error.OutOfMemory, error.ReadFailed, error.Damaged, error.Lost => return reason,
        error.TableDamaged, error.TooManyPartitions, error.TooMuchWork, error.BeyondTheEnd => {
            const name = try builder.addRoot(.unmapped, "not mapped: a damaged partition table");
            return builder.finish(name);
        },
    };
    disk.read_budget.reads_left = limits.reads;
    const outside = try builder.addRoot(.unmapped, "outside of file systems");
    try addTable(disk, &builder);
    for (disk.parts.constSlice(), 0..) |*part, index| {
        var walk: Walk = .{
            .gpa = gpa,
            .disk = disk,
            .part = part,
            .index = @intCast(index),
            .place = .{
                .builder = &builder,
                .first = part.volume.first,
                .segments = part.segments,
                .system = "",
                .label = try labelOf(arena.allocator(), part),
            },
        };
        defer walk.deinit();
        try walk.run();
    }
    return builder.finish(outside);
}

/// A table ends where the first partition begins, or after the sectors that GPT takes.
fn addTable(disk: *const Disk, builder: *Builder) Error!void {
    if (disk.table == .none) return;
    const entries = 16 << 10;
    const sectors: u64 = if (disk.table == .gpt) 2 else 1;
    const size = sectors * disk.sector_size + if (disk.table == .gpt) @as(u64, entries) else 0;
    const name = try builder.addRoot(.area, "partition table");
    try builder.addGround(0, size, name);
    if (disk.table != .gpt) return;
    const copy = entries + @as(u64, disk.sector_size);
    if (builder.disk_size > copy) try builder.addGround(builder.disk_size - copy, copy, name);
}

fn labelOf(arena: Allocator, part: *const Disk.Part) Allocator.Error![]const u8 {
    if (part.logical) |name| return name;
    const number = part.number() orelse return "";
    return std.fmt.allocPrint(arena, "partition {d}", .{number});
}

/// What cannot be read of one file or directory; the others are mapped.
fn isLocal(reason: file_system.Error) bool {
    return switch (reason) {
        error.ReadFailed, error.Lost, error.TooMuchWork => false,
        error.Corrupt, error.Encrypted, error.Unsupported => true,
        error.BeyondTheEnd, error.Damaged => true,
    };
}

const Walk = struct {
    gpa: Allocator,
    disk: *Disk,
    part: *const Disk.Part,
    index: u8,
    place: Place,
    /// Files that were found already: hard links, and circles of damaged directories.
    seen: std.AutoHashMapUnmanaged(u64, void) = .empty,
    levels: std.ArrayList(*Level) = .empty,

    const Level = struct { node: Node, names: file_system.Names, name: u32 };

    fn deinit(walk: *Walk) void {
        walk.seen.deinit(walk.gpa);
        for (walk.levels.items) |level| walk.gpa.destroy(level);
        walk.levels.deinit(walk.gpa);
    }

    fn run(walk: *Walk) Error!void {
        const part = walk.part;
        if (part.volume.size == 0) return;
        const system = switch (part.content) {
            .readable => |*readable| readable,
            .refused => |refusal| return walk.refuse(refusal),
        };
        walk.place.system = system.name();
        // A file system that claims more than its place is damaged; sums stay small.
        if (system.size() > FileMap.disk_size_max) return walk.refuse(.damaged);
        const size = @min(system.size(), part.volume.size);
        const ground = walk.mapSystem(system) catch |reason| switch (reason) {
            error.TooMuchWork => try walk.place.addNamed(
                .unmapped,
                "not mapped to the end: it is too large, or damaged",
            ),
            error.ReadFailed, error.Lost => try walk.place.addNamed(
                .unmapped,
                "not mapped to the end: the disk cannot be read",
            ),
            error.TooLarge => try walk.place.addNamed(
                .unmapped,
                "not mapped to the end: it has too many files",
            ),
            error.OutOfMemory => return error.OutOfMemory,
            else => try walk.place.addNamed(.unmapped, "not mapped: it is damaged"),
        };
        if (system.* == .squashfs) return;
        try walk.place.addGround(size, ground);
    }

    fn refuse(walk: *Walk, refusal: file_system.Refusal) Error!void {
        const size = walk.part.volume.size;
        if (refusal == .swap)
            return walk.place.addGround(size, try walk.place.addArea("swap space"));
        const name = try walk.place.addNamed(.unmapped, switch (refusal) {
            .several_devices => "not mapped: Btrfs on several devices",
            .unknown_profile => "not mapped: Btrfs with an unknown profile",
            .unknown_codec => "not mapped: packed by an unknown codec",
            // Its logical volumes are parts of their own.
            .lvm => "not mapped: LVM",
            .lvm_damaged => "not mapped: damaged LVM",
            .lvm_striped, .lvm_raid, .lvm_thin, .lvm_cache, .lvm_other => "not mapped: logical " ++
                "volume that is not linear",
            .lvm_on_another_disk => "not mapped: logical volume on another disk",
            .luks => "not mapped: encrypted by LUKS",
            .swap => unreachable,
            .not_unmounted => "not mapped: a file system that was not unmounted",
            .unknown_feature => "not mapped: a file system with an unknown feature",
            .damaged => "not mapped: a damaged file system",
            .unknown => "not mapped: no known file system",
        });
        return walk.place.addGround(size, name);
    }

    /// Returns the name for what is in no file.
    fn mapSystem(walk: *Walk, system: *const FileSystem) (file_system.Error || Error)!u32 {
        switch (system.*) {
            .ext => |*ext| {
                try ext_blocks.addAreas(ext, &walk.place);
                try ext_blocks.addHiddenFiles(ext, &walk.place);
            },
            .fat => |*fat| try fat_clusters.addAreas(fat, &walk.place),
            .xfs => |*xfs| try xfs_blocks.addAreas(xfs, &walk.place),
            .squashfs => |*squashfs| try squashfs_blocks.addAreas(squashfs, &walk.place),
            .btrfs => {},
        }
        const inodes = if (system.* == .xfs) try walk.place.addArea("inodes") else null;
        try walk.open(try system.root(), try walk.addRoot(), system);
        while (walk.levels.items.len > 0) {
            const level = walk.levels.items[walk.levels.items.len - 1];
            const found = system.nextNode(&level.node, &level.names) catch |reason| {
                if (!isLocal(reason)) return reason;
                walk.leave();
                continue;
            } orelse {
                walk.leave();
                continue;
            };
            const node = found.node catch |reason| {
                if (!isLocal(reason)) return reason;
                continue;
            };
            if (try walk.hasSeen(system, &node)) continue;
            const kind: FileMap.Kind = switch (node.kind()) {
                .directory => .directory,
                .symlink => .link,
                .file => .file,
                .other => continue,
            };
            const name = try walk.place.builder.addName(level.name, kind, found.name);
            if (inodes) |area| try walk.addInode(system, &node, area);
            if (kind == .directory) try walk.open(node, name, system) else //
            try walk.addFile(system, &node, name);
        }
        return walk.place.addNamed(switch (system.*) {
            // Their trees are not followed.
            .xfs, .btrfs => .area,
            .ext, .fat, .squashfs => .free,
        }, switch (system.*) {
            .xfs => "trees and free space",
            .btrfs => "trees, other subvolumes and free space",
            .ext, .fat, .squashfs => "free space",
        });
    }

    /// The root of the system's paths: that of the system itself, /boot, or another one.
    fn addRoot(walk: *Walk) Error!u32 {
        const builder = walk.place.builder;
        if (walk.disk.root == walk.index) return builder.addRoot(.directory, "");
        if (walk.disk.boot == walk.index) return builder.addRoot(.directory, "/boot");
        if (walk.place.label.len == 0) return builder.addRoot(.directory, "");
        var buffer: [300]u8 = undefined;
        const text = std.mem.print(&buffer, "{s}:", .{walk.place.label}) catch walk.place.label;
        return builder.addRoot(.directory, text);
    }

    fn open(
        walk: *Walk,
        node: Node,
        name: u32,
        system: *const FileSystem,
    ) (file_system.Error || Error)!void {
        if (node.kind() != .directory or walk.levels.items.len == depth_max) return;
        try walk.addFile(system, &node, name);
        const level = try walk.gpa.create(Level);
        errdefer walk.gpa.destroy(level);
        level.* = .{ .node = node, .names = undefined, .name = name };
        level.names = file_system.Names.open(system, &level.node) catch |reason| {
            if (!isLocal(reason)) return reason;
            walk.gpa.destroy(level);
            return;
        };
        try walk.levels.append(walk.gpa, level);
    }

    fn leave(walk: *Walk) void {
        const level = walk.levels.pop().?;
        walk.gpa.destroy(level);
    }

    /// An inode whose place is wrong is left out.
    fn addInode(walk: *Walk, system: *const FileSystem, node: *const Node, area: u32) Error!void {
        const place = &walk.place;
        xfs_blocks.addInode(&system.xfs, &node.xfs, place, area) catch |reason| switch (reason) {
            error.OutOfMemory, error.TooLarge => |other| return other,
            else => {},
        };
    }

    fn addFile(
        walk: *Walk,
        system: *const FileSystem,
        node: *const Node,
        name: u32,
    ) (file_system.Error || Error)!void {
        const place = &walk.place;
        const result: (file_system.Error || Error)!void = switch (system.*) {
            .ext => |*ext| ext_blocks.addFile(ext, &node.ext, place, name),
            .fat => |*fat| fat_clusters.addFile(fat, node.fat, place, name),
            .xfs => |*xfs| xfs_blocks.addFile(xfs, &node.xfs, place, name),
            .squashfs => |*found| squashfs_blocks.addFile(found, &node.squashfs, place, name),
            .btrfs => |*found| btrfs_extents.addFile(found, &node.btrfs, place, name),
        };
        result catch |reason| switch (reason) {
            error.Corrupt, error.Encrypted, error.Unsupported => {},
            error.BeyondTheEnd, error.Damaged => {},
            else => return reason,
        };
    }

    /// Whether the node was found before, under another name.
    fn hasSeen(walk: *Walk, system: *const FileSystem, node: *const Node) Error!bool {
        const id: u64 = switch (system.*) {
            // The byte of the inode is not known: its blocks tell one from another.
            .ext => node.ext.number,
            .xfs => node.xfs.number,
            // Empty files have no cluster, and no bytes either.
            .fat => if (node.fat.cluster == 0) return false else node.fat.cluster,
            .squashfs => @as(u64, node.squashfs.list.block) << 16 | node.squashfs.list.offset,
            .btrfs => node.btrfs.number ^ node.btrfs.tree.number << 40,
        };
        if (walk.seen.count() == FileMap.names_max) return error.TooLarge;
        const entry = try walk.seen.getOrPut(walk.gpa, id);
        return entry.found_existing;
    }
};
