//! A disk as its file systems: the content of each partition, the system's root and /boot, and the
//! files of paths across both.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const wire = @import("wire");
const partitions_module = @import("partitions.zig");
const file_system = @import("file_system.zig");
const lvm = @import("lvm/lvm.zig");
const volume_module = @import("volume.zig");
const Workspace = @import("workspace.zig");
const Allocator = std.mem.Allocator;
const BlockSource = store.BlockSource;
const FileSystem = file_system.FileSystem;
const Node = file_system.Node;
const Volume = volume_module.Volume;
const ReadBudget = volume_module.ReadBudget;

pub const path_size_max = 4096;
const links_max = 40;
const depth_max = 48;
/// Reads for one query: kernels and modules need some ten thousand, and a damaged disk could need
/// any number.
const reads_max = 2_000_000;

pub const Error = file_system.Error;
pub const OpenError = partitions_module.Error || Allocator.Error;

pub const Part = struct {
    /// Null for a file system that fills the disk, and for a logical volume.
    partition: ?partitions_module.Partition,
    /// "group/volume" of a logical volume of LVM.
    logical: ?[]const u8 = null,
    /// Where a logical volume lies.
    segments: []const lvm.LogicalVolume.Segment = &.{},
    volume: Volume,
    content: file_system.OpenResult,
    /// The partition, or its file system, extends beyond the end of the disk.
    is_cut: bool,

    pub fn number(part: *const Part) ?u16 {
        return if (part.partition) |partition| partition.number else null;
    }
};

pub const Parts = base.BoundedArray(Part, partitions_module.partitions_max);

/// A file or directory that was found.
pub const FileRef = struct { part: u8, node: Node };

/// Large, and must not move once it is open: its parts point into it.
pub const Disk = @This();

read_budget: ReadBudget,
workspace: Workspace,
table: partitions_module.Table,
/// Bytes, according to the partition table.
sector_size: u32,
is_backup_table: bool,
parts: Parts,
/// Indices of `parts`. The boot part is mounted at /boot of the root.
root: ?u8,
boot: ?u8,

/// Scans the whole disk. `source` must outlive the disk; `arena` keeps what describes its logical
/// volumes, and what is needed to unpack its files.
pub fn open(disk: *Disk, arena: Allocator, source: *const BlockSource) OpenError!void {
    disk.* = .{
        .read_budget = .{ .reads_left = reads_max },
        .workspace = .init(arena),
        .table = .none,
        .sector_size = wire.partition_table.sector_size,
        .is_backup_table = false,
        .parts = .empty,
        .root = null,
        .boot = null,
    };
    const whole: Volume = .whole(source, &disk.read_budget);
    const layout = try partitions_module.read(&whole);
    disk.table = layout.table;
    disk.sector_size = layout.sector_size;
    disk.is_backup_table = layout.is_backup;
    if (layout.table == .none) {
        try disk.append(null, whole);
    } else for (layout.partitions.constSlice()) |partition| {
        const volume = whole.part(partition.first, partition.size) orelse
            Volume{ .source = source, .first = 0, .size = 0, .read_budget = &disk.read_budget };
        try disk.append(partition, volume);
    }
    try disk.openLogicalVolumes(arena, source);
    try disk.findRoles();
}

/// Adds a part for each logical volume of the disk's groups.
fn openLogicalVolumes(disk: *Disk, arena: Allocator, source: *const BlockSource) OpenError!void {
    var members: std.ArrayList(lvm.PhysicalVolume) = .empty;
    for (disk.parts.slice()) |*part| switch (part.content) {
        .readable => {},
        .refused => |refusal| if (refusal == .lvm) {
            const member = lvm.open(&part.volume) catch |reason| switch (reason) {
                error.Damaged, error.BeyondTheEnd => null,
                else => |other| return other,
            };
            if (member) |known| {
                try members.append(arena, known);
            } else part.content = .{ .refused = .lvm_damaged };
        },
    };
    var groups: std.ArrayList(lvm.Group) = .empty;
    for (members.items) |*member| {
        if (lvm.isMember(groups.items, &member.id)) continue;
        if (groups.items.len == lvm.groups_max) return error.TooManyPartitions;
        const found = disk.readGroup(arena, source, member, members.items) catch |reason|
            switch (reason) {
                error.Damaged, error.BeyondTheEnd => {
                    disk.markDamaged(member);
                    continue;
                },
                else => |other| return other,
            };
        try groups.append(arena, found orelse continue);
    }
}

fn readGroup(
    disk: *Disk,
    arena: Allocator,
    source: *const BlockSource,
    member: *const lvm.PhysicalVolume,
    members: []const lvm.PhysicalVolume,
) (OpenError || error{Damaged})!?lvm.Group {
    const group = try member.readGroup(arena) orelse return null;
    for (try lvm.logicalVolumes(arena, source, &group, members)) |*logical|
        try disk.appendLogical(arena, logical);
    return group;
}

fn markDamaged(disk: *Disk, member: *const lvm.PhysicalVolume) void {
    for (disk.parts.slice()) |*part| if (part.logical == null and
        part.volume.first == member.volume.first)
    {
        part.content = .{ .refused = .lvm_damaged };
    };
}

fn appendLogical(disk: *Disk, arena: Allocator, logical: *const lvm.Found) OpenError!void {
    if (disk.parts.count == partitions_module.partitions_max) return error.TooManyPartitions;
    const volume: Volume = switch (logical.content) {
        .linear => |linear| linear: {
            const source = try arena.create(BlockSource);
            source.* = linear.source();
            break :linear .whole(source, &disk.read_budget);
        },
        .refused => |refusal| {
            disk.parts.appendAssumeCapacity(.{
                .partition = null,
                .logical = logical.name,
                .volume = .{
                    .source = disk.parts.buffer[0].volume.source,
                    .first = 0,
                    .size = 0,
                    .read_budget = &disk.read_budget,
                },
                .content = .{ .refused = switch (refusal) {
                    .striped => .lvm_striped,
                    .raid => .lvm_raid,
                    .thin => .lvm_thin,
                    .cache => .lvm_cache,
                    .snapshot, .other => .lvm_other,
                    .on_another_disk => .lvm_on_another_disk,
                } },
                .is_cut = false,
            });
            return;
        },
    };
    try disk.append(null, volume);
    const part = &disk.parts.buffer[disk.parts.count - 1];
    part.logical = logical.name;
    part.segments = logical.content.linear.segments;
}

fn append(disk: *Disk, partition: ?partitions_module.Partition, volume: Volume) OpenError!void {
    const content: file_system.OpenResult = if (volume.size ==
        0) .{ .refused = .unknown } else try FileSystem.open(volume, &disk.workspace);
    const needs = switch (content) {
        .readable => |*readable| readable.size(),
        .refused => 0,
    };
    const said = if (partition) |known| known.size else volume.size;
    disk.parts.appendAssumeCapacity(.{
        .partition = partition,
        .volume = volume,
        .content = content,
        .is_cut = said > volume.size or needs > volume.size,
    });
}

/// Restarts the read budget for another query of an open disk.
pub fn renewWork(disk: *Disk) void {
    disk.read_budget.reads_left = reads_max;
}

pub fn system(disk: *const Disk, part: u8) ?*const FileSystem {
    return switch (disk.parts.buffer[part].content) {
        .readable => |*readable| readable,
        .refused => null,
    };
}

fn findRoles(disk: *Disk) volume_module.ReadError!void {
    for (0..disk.parts.count) |index| {
        const part: u8 = @intCast(index);
        if (disk.root == null and
            (try disk.isRoot(part) or try disk.findSubvolume(part))) disk.root = part;
    }
    const root = disk.root orelse return;
    if (try disk.hasKernel(root, "/boot")) return;
    for (0..disk.parts.count) |index| {
        const part: u8 = @intCast(index);
        if (part == root or disk.boot != null) continue;
        if (try disk.hasKernel(part, "/")) disk.boot = part;
    }
}

/// Looks for a root in the subvolumes that are not mounted by default.
fn findSubvolume(disk: *Disk, part: u8) volume_module.ReadError!bool {
    const content = &disk.parts.buffer[part].content;
    if (content.* != .readable) return false;
    const before = content.readable;
    for (file_system.root_subvolumes) |name| {
        const is_there = content.readable.enter(name) catch |reason| switch (reason) {
            error.Corrupt, error.Encrypted, error.Unsupported => false,
            else => |other| return other,
        };
        if (is_there and try disk.isRoot(part)) return true;
        content.readable = before;
    }
    return false;
}

fn isRoot(disk: *const Disk, part: u8) volume_module.ReadError!bool {
    if (!try disk.has(part, "/etc", .directory)) return false;
    for ([_][]const u8{ "/usr/bin", "/sbin", "/bin" }) |path|
        if (try disk.has(part, path, .directory)) return true;
    return false;
}

/// Damaged parts count as missing; only an unreadable disk is an error.
pub fn has(
    disk: *const Disk,
    part: u8,
    path: []const u8,
    kind: file_system.Kind,
) volume_module.ReadError!bool {
    const found = disk.find(part, path) catch |reason| switch (reason) {
        error.Corrupt, error.Encrypted, error.Unsupported => return false,
        else => |other| return other,
    } orelse return false;
    return found.node.kind() == kind;
}

fn hasKernel(disk: *const Disk, part: u8, path: []const u8) volume_module.ReadError!bool {
    return disk.hasKernelOrError(part, path) catch |reason| switch (reason) {
        error.Corrupt, error.Encrypted, error.Unsupported => false,
        else => |other| other,
    };
}

fn hasKernelOrError(disk: *const Disk, part: u8, path: []const u8) Error!bool {
    const found = try disk.find(part, path) orelse return false;
    if (found.node.kind() != .directory) return false;
    var names: file_system.Names = try .open(disk.system(found.part).?, &found.node);
    while (try names.next()) |name| if (std.mem.startsWith(u8, name, "vmlinuz")) return true;
    return false;
}

/// Finds the file of a path in a part, following symbolic links; null if missing. From the
/// root's file system, /boot is the boot part.
pub fn find(disk: *const Disk, part: u8, path: []const u8) Error!?FileRef {
    if (disk.system(part) == null or path.len > path_size_max) return null;
    var walk: PathResolver = .{ .disk = disk, .origin = part };
    return walk.run(path);
}

/// Reads a small file; null if it is missing, larger, or not a file.
fn readText(
    disk: *const Disk,
    gpa: Allocator,
    place: *const FileRef,
    size_max: usize,
) (Error || Allocator.Error)!?[]u8 {
    const size = place.node.size();
    if (place.node.kind() != .file or size > size_max) return null;
    const text = try gpa.alloc(u8, @intCast(size));
    errdefer gpa.free(text);
    var content: file_system.Content = .open(disk.system(place.part).?, &place.node);
    try content.read(text, 0);
    return text;
}

pub fn readTextAt(
    disk: *const Disk,
    gpa: Allocator,
    part: u8,
    path: []const u8,
    size_max: usize,
) (Error || Allocator.Error)!?[]u8 {
    const place = try disk.find(part, path) orelse return null;
    return disk.readText(gpa, &place, size_max);
}

/// Returns at most `names_max` names of a directory for which `isWanted` holds; none if the
/// directory is missing.
pub fn list(
    disk: *const Disk,
    gpa: Allocator,
    part: u8,
    path: []const u8,
    isWanted: *const fn (name: []const u8) bool,
) (Error || Allocator.Error)![]const []const u8 {
    var found: std.ArrayList([]const u8) = .empty;
    const place = try disk.find(part, path) orelse return found.items;
    if (place.node.kind() != .directory) return found.items;
    var names: file_system.Names = try .open(disk.system(place.part).?, &place.node);
    while (try names.next()) |name| {
        if (found.items.len == names_max) break;
        if (isWanted(name)) try found.append(gpa, try gpa.dupe(u8, name));
    }
    return found.items;
}

pub const names_max = 256;

/// One path resolution. It does not recurse: the target of a link is put before the rest of the
/// path.
const PathResolver = struct {
    disk: *const Disk,
    origin: u8,
    stack: [depth_max]FileRef = undefined,
    depth: usize = 0,
    texts: [2][path_size_max]u8 = undefined,
    current: u1 = 0,

    fn run(walk: *PathResolver, path: []const u8) Error!?FileRef {
        try walk.begin();
        @memcpy(walk.texts[0][0..path.len], path);
        var rest: []const u8 = walk.texts[0][0..path.len];
        var links: usize = 0;
        while (true) {
            const first = std.mem.findNone(u8, rest, "/") orelse return walk.stack[walk.depth - 1];
            const end = std.mem.findScalarPos(u8, rest, first, '/') orelse rest.len;
            const name = rest[first..end];
            rest = rest[end..];
            if (std.mem.eql(u8, name, ".")) continue;
            if (std.mem.eql(u8, name, "..")) {
                if (walk.depth > 1) walk.depth -= 1;
                continue;
            }
            const node = try walk.step(name) orelse return null;
            if (node.kind() == .symlink) {
                links += 1;
                if (links > links_max) return null;
                rest = try walk.follow(&node, rest) orelse return null;
                if (rest.len > 0 and rest[0] == '/') try walk.begin();
                continue;
            }
            if (walk.depth == depth_max) return null;
            const above = walk.stack[walk.depth - 1].part;
            walk.stack[walk.depth] = try walk.mounted(name) orelse .{ .part = above, .node = node };
            walk.depth += 1;
        }
    }

    fn begin(walk: *PathResolver) Error!void {
        walk.stack[0] =
            .{ .part = walk.origin, .node = try walk.disk.system(walk.origin).?.root() };
        walk.depth = 1;
    }

    fn step(walk: *const PathResolver, name: []const u8) Error!?Node {
        const above = &walk.stack[walk.depth - 1];
        if (above.node.kind() != .directory) return null;
        return walk.disk.system(above.part).?.find(&above.node, name);
    }

    fn mounted(walk: *const PathResolver, name: []const u8) Error!?FileRef {
        const boot = walk.disk.boot orelse return null;
        if (walk.depth != 1 or walk.origin != walk.disk.root.? or
            !std.mem.eql(u8, name, "boot")) return null;
        return .{ .part = boot, .node = try walk.disk.system(boot).?.root() };
    }

    /// The link's target, followed by the rest of the path.
    fn follow(walk: *PathResolver, node: *const Node, rest: []const u8) Error!?[]const u8 {
        const part = walk.stack[walk.depth - 1].part;
        const size = node.size();
        if (size == 0 or size + rest.len > path_size_max) return null;
        const other = walk.current +% 1;
        const text = &walk.texts[other];
        const target = text[0..@intCast(size)];
        var content: file_system.Content = .open(walk.disk.system(part).?, node);
        try content.read(target, 0);
        @memcpy(text[target.len..][0..rest.len], rest);
        walk.current = other;
        return text[0 .. target.len + rest.len];
    }
};
