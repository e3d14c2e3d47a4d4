//! One file system of a disk, of any supported type, as far as boot files need it: directories by
//! name, files by offset, symbolic links.

const std = @import("std");
const wire = @import("wire");
const btrfs = @import("btrfs/btrfs.zig");
const btrfs_file = @import("btrfs/file.zig");
const ext = @import("ext.zig");
const fat = @import("fat.zig");
const squashfs = @import("squashfs/squashfs.zig");
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;
const Workspace = @import("workspace.zig");
const xfs = @import("xfs/xfs.zig");
const xfs_directory = @import("xfs/directory.zig");

pub const root_subvolumes = btrfs.root_subvolumes;
pub const name_size_max = fat.name_size_max;
pub const Kind = ext.Kind;

pub const Error = ext.InodeError || error{
    /// A file that is stored in a way that is not read.
    Unsupported,
};
pub const OpenError = volume_module.ReadError || error{OutOfMemory};

/// Why a volume cannot be read.
pub const Refusal = enum {
    /// Btrfs on more than this device, or with a profile that is not read.
    several_devices,
    unknown_profile,
    /// Compressed by a codec that is not read.
    unknown_codec,
    /// A physical volume of LVM. The logical volumes of its group are parts of their own.
    lvm,
    lvm_damaged,
    /// Logical volumes that are not linear.
    lvm_striped,
    lvm_raid,
    lvm_thin,
    lvm_cache,
    lvm_other,
    /// A logical volume that is not only on this disk.
    lvm_on_another_disk,
    luks,
    swap,
    /// Its journal must be replayed.
    not_unmounted,
    unknown_feature,
    damaged,
    /// It holds nothing known.
    unknown,
};

pub const OpenResult = union(enum) { readable: FileSystem, refused: Refusal };

pub const FileSystem = union(enum) {
    ext: ext.Ext,
    fat: fat.Fat,
    squashfs: squashfs.Squashfs,
    xfs: xfs.Xfs,
    btrfs: btrfs.Btrfs,

    /// Detects the content of the volume. Errors are the disk's.
    pub fn open(volume: Volume, workspace: *Workspace) OpenError!OpenResult {
        if (try openBtrfs(volume, workspace)) |opened| return opened;
        if (try openXfs(volume)) |opened| return opened;
        if (try openSquashfs(volume, workspace)) |opened| return opened;
        if (try openExt(volume)) |opened| return opened;
        const found_fat: ?fat.Fat = fat.Fat.open(volume) catch |reason| switch (reason) {
            error.NotFat => null,
            error.Corrupt => return .{ .refused = .damaged },
            else => |other| return other,
        };
        if (found_fat) |found| return .{ .readable = .{ .fat = found } };
        return .{ .refused = try identify(volume) };
    }

    fn openExt(volume: Volume) volume_module.ReadError!?OpenResult {
        const found = ext.Ext.open(volume) catch |reason| return switch (reason) {
            error.NotExt => null,
            error.NotUnmounted => .{ .refused = .not_unmounted },
            error.UnknownFeature => .{ .refused = .unknown_feature },
            error.Corrupt, error.Encrypted => .{ .refused = .damaged },
            else => |other| other,
        };
        return .{ .readable = .{ .ext = found } };
    }

    fn openBtrfs(volume: Volume, workspace: *Workspace) OpenError!?OpenResult {
        const found = btrfs.Btrfs.open(volume, workspace) catch |reason| return switch (reason) {
            error.NotBtrfs => null,
            error.NotUnmounted => .{ .refused = .not_unmounted },
            error.SeveralDevices => .{ .refused = .several_devices },
            error.UnknownFeature => .{ .refused = .unknown_feature },
            error.Unsupported => .{ .refused = .unknown_profile },
            error.Corrupt => .{ .refused = .damaged },
            else => |other| other,
        };
        return .{ .readable = .{ .btrfs = found } };
    }

    fn openXfs(volume: Volume) OpenError!?OpenResult {
        const found = xfs.Xfs.open(volume) catch |reason| return switch (reason) {
            error.NotXfs => null,
            error.NotUnmounted => .{ .refused = .not_unmounted },
            error.UnknownFeature => .{ .refused = .unknown_feature },
            error.Corrupt, error.Unsupported => .{ .refused = .damaged },
            else => |other| other,
        };
        return .{ .readable = .{ .xfs = found } };
    }

    fn openSquashfs(volume: Volume, workspace: *Workspace) OpenError!?OpenResult {
        return .{ .readable = .{
            .squashfs = squashfs.Squashfs.open(volume, workspace) catch |reason|
                return switch (reason) {
                    error.NotSquashfs => null,
                    error.OldVersion => .{ .refused = .unknown_feature },
                    error.UnknownCodec => .{ .refused = .unknown_codec },
                    error.Corrupt => .{ .refused = .damaged },
                    else => |other| other,
                },
        } };
    }

    fn identify(volume: Volume) volume_module.ReadError!Refusal {
        const file_system = wire.file_system;
        var front: [file_system.front_size]u8 = @splat(0);
        try volume.read(front[0..@intCast(@min(front.len, volume.size))], 0);
        var super: [file_system.btrfs_size]u8 = undefined;
        const has_btrfs = volume.size >= file_system.btrfs_offset + super.len;
        if (has_btrfs) try volume.read(&super, file_system.btrfs_offset);
        if (file_system.identify(
            .{ .front = &front, .btrfs = if (has_btrfs) &super else null },
        )) |found|
            return switch (found.kind) {
                .xfs, .btrfs, .squashfs, .ext4 => .damaged,
            };
        if (std.mem.startsWith(u8, &front, "LUKS\xba\xbe")) return .luks;
        for (0..4) |sector|
            if (std.mem.startsWith(u8, front[sector * 512 ..], "LABELONE")) return .lvm;
        if (std.mem.eql(u8, front[4086..4096], "SWAPSPACE2")) return .swap;
        return .unknown;
    }

    /// Returns the subvolume that a mount must ask for to see the same root, or null.
    pub fn subvolume(system: *const FileSystem) ?[]const u8 {
        return switch (system.*) {
            .btrfs => |*found| found.subvolume_path,
            else => null,
        };
    }

    pub fn name(system: *const FileSystem) []const u8 {
        return switch (system.*) {
            .ext => |*open_ext| if (open_ext.has_extents)
                "ext4"
            else if (open_ext.has_journal) "ext3" else "ext2",
            .fat => |*open_fat| switch (open_fat.width) {
                .fat12 => "FAT12",
                .fat16 => "FAT16",
                .fat32 => "FAT32",
            },
            .squashfs => "Squashfs",
            .xfs => "XFS",
            .btrfs => "Btrfs",
        };
    }

    /// Takes a subvolume as the root of paths; false if there is none of this name.
    pub fn enter(system: *FileSystem, subvolume_name: []const u8) Error!bool {
        return switch (system.*) {
            .btrfs => |*found| try found.enter(subvolume_name),
            else => false,
        };
    }

    /// Bytes.
    pub fn size(system: *const FileSystem) u64 {
        return switch (system.*) {
            inline else => |*open_system| open_system.size(),
        };
    }

    pub fn root(system: *const FileSystem) Error!Node {
        return switch (system.*) {
            .ext => |*open_ext| .{ .ext = try open_ext.inodeOf(ext.root_inode) },
            .fat => |*open_fat| .{ .fat = open_fat.root() },
            .squashfs => |*found| .{ .squashfs = try found.root() },
            .xfs => |*found| .{ .xfs = try found.root() },
            .btrfs => |*found| .{ .btrfs = try found.root() },
        };
    }

    /// Returns null if the directory has no such name. `Corrupt` also if `directory` is not a
    /// directory.
    pub fn find(system: *const FileSystem, directory: *const Node, wanted: []const u8) Error!?Node {
        switch (system.*) {
            .ext => |*open_ext| {
                const number = try ext.findName(open_ext, &directory.ext, wanted) orelse
                    return null;
                return .{ .ext = try open_ext.inodeOf(number) };
            },
            .fat => |*open_fat| return .{
                .fat = try fat.find(open_fat, directory.fat, wanted) orelse return null,
            },
            .squashfs => |*found| {
                const node = try squashfs.find(found, &directory.squashfs, wanted) orelse
                    return null;
                return .{ .squashfs = node };
            },
            .xfs => |*found| {
                const number = try xfs_directory.findName(found, &directory.xfs, wanted) orelse
                    return null;
                return .{ .xfs = try found.inodeOf(number) };
            },
            .btrfs => |*found| return .{
                .btrfs = try btrfs.find(found, &directory.btrfs, wanted) orelse return null,
            },
        }
    }

    /// Returns the next entry of a directory; `names` are those of `directory`.
    pub fn nextNode(
        system: *const FileSystem,
        directory: *const Node,
        names: *Names,
    ) Error!?struct { name: []const u8, node: Error!Node } {
        switch (names.*) {
            .ext => |*entries| while (try entries.next()) |entry| {
                if (isDots(entry.name)) continue;
                return .{ .name = entry.name, .node = ofExt(&system.ext, entry.inode) };
            },
            .xfs => |*entries| while (try entries.next()) |entry| {
                if (isDots(entry.name)) continue;
                return .{ .name = entry.name, .node = ofXfs(&system.xfs, entry.inode) };
            },
            .fat => |*entries| if (try entries.next()) |entry|
                return .{ .name = entry.name, .node = .{ .fat = entry.node } },
            .squashfs => |*entries| if (try entries.next()) |entry| return .{
                .name = entry.name,
                .node = ofSquashfs(&system.squashfs, entry.reference),
            },
            .btrfs => |*entries| if (try entries.next()) |entry| return .{
                .name = entry.name,
                .node = system.named(directory, entry.name),
            },
        }
        return null;
    }

    fn named(system: *const FileSystem, directory: *const Node, wanted: []const u8) Error!Node {
        return try system.find(directory, wanted) orelse error.Corrupt;
    }

    fn ofExt(open_ext: *const ext.Ext, number: u32) Error!Node {
        return .{ .ext = try open_ext.inodeOf(number) };
    }

    fn ofXfs(found: *const xfs.Xfs, number: u64) Error!Node {
        return .{ .xfs = try found.inodeOf(number) };
    }

    fn ofSquashfs(found: *const squashfs.Squashfs, reference: u64) Error!Node {
        return .{ .squashfs = try found.nodeAt(reference) };
    }
};

/// A file, directory or link; holds values only.
pub const Node = union(enum) {
    ext: ext.Inode,
    fat: fat.Node,
    squashfs: squashfs.Node,
    xfs: xfs.Inode,
    btrfs: btrfs.Node,

    pub fn kind(node: *const Node) Kind {
        return switch (node.*) {
            inline .ext, .squashfs, .xfs, .btrfs => |*inode| inode.kind,
            .fat => |*found| if (found.is_directory) .directory else .file,
        };
    }

    /// Bytes.
    pub fn size(node: *const Node) u64 {
        return switch (node.*) {
            inline else => |*found| found.size,
        };
    }
};

/// Reads a file or link. Its node and file system must not move.
pub const Content = union(enum) {
    ext: ext.File,
    fat: fat.File,
    squashfs: squashfs.File,
    xfs: xfs.File,
    btrfs: btrfs_file.File,

    pub fn open(system: *const FileSystem, node: *const Node) Content {
        return switch (system.*) {
            .ext => |*open_ext| .{ .ext = .{ .ext = open_ext, .inode = &node.ext } },
            .fat => |*open_fat| .{ .fat = .{ .fat = open_fat, .node = node.fat } },
            .squashfs => |*found| .{ .squashfs = .open(found, &node.squashfs) },
            .xfs => |*found| .{ .xfs = .{ .xfs = found, .inode = &node.xfs } },
            .btrfs => |*found| .{ .btrfs = .open(found, &node.btrfs) },
        };
    }

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(content: *Content, buffer: []u8, offset: u64) Error!void {
        switch (content.*) {
            inline .ext, .squashfs, .xfs, .btrfs => |*file| try file.read(buffer, offset),
            .fat => |*file| if (!try file.read(buffer, offset)) return error.Corrupt,
        }
    }
};

/// Iterates over the names of a directory.
pub const Names = union(enum) {
    ext: ext.Directory,
    fat: fat.Directory,
    squashfs: squashfs.Directory,
    xfs: xfs_directory.Directory,
    btrfs: btrfs.Directory,

    pub fn open(system: *const FileSystem, node: *const Node) Error!Names {
        return switch (system.*) {
            .ext => |*open_ext| .{ .ext = try .open(open_ext, &node.ext) },
            .fat => |*open_fat| .{ .fat = try .open(open_fat, node.fat) },
            .squashfs => |*found| .{ .squashfs = try .open(found, &node.squashfs) },
            .xfs => |*found| .{ .xfs = try .open(found, &node.xfs) },
            .btrfs => |*found| .{ .btrfs = try .open(found, &node.btrfs) },
        };
    }

    /// Returns null at the end; valid until the next call. Skips `.` and `..`.
    pub fn next(names: *Names) Error!?[]const u8 {
        switch (names.*) {
            inline .ext, .xfs => |*directory| while (try directory.next()) |entry| {
                if (isDots(entry.name)) continue;
                return entry.name;
            },
            inline .fat, .squashfs, .btrfs => |*directory| if (try directory.next()) |entry|
                return entry.name,
        }
        return null;
    }
};

fn isDots(name: []const u8) bool {
    return std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..");
}
