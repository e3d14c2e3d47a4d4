//! One file system of a disk, of any supported type, as far as boot files need it: directories by
//! name, files by offset, symbolic links.

const std = @import("std");
const wire = @import("wire");
const ext = @import("ext.zig");
const fat = @import("fat.zig");
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;

pub const name_size_max = fat.name_size_max;
pub const Kind = ext.Kind;

pub const Error = ext.InodeError;

/// Why a volume cannot be read.
pub const Refusal = enum {
    xfs,
    btrfs,
    squashfs,
    /// A physical volume of LVM.
    lvm,
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

    /// Detects the content of the volume. Errors are the disk's.
    pub fn open(volume: Volume) volume_module.ReadError!OpenResult {
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
                .xfs => .xfs,
                .btrfs => .btrfs,
                .squashfs => .squashfs,
                .ext4 => .damaged,
            };
        if (std.mem.startsWith(u8, &front, "LUKS\xba\xbe")) return .luks;
        if (std.mem.startsWith(u8, front[512..], "LABELONE")) return .lvm;
        if (std.mem.eql(u8, front[4086..4096], "SWAPSPACE2")) return .swap;
        return .unknown;
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
        }
    }
};

/// A file, directory or link; holds values only.
pub const Node = union(enum) {
    ext: ext.Inode,
    fat: fat.Node,

    pub fn kind(node: *const Node) Kind {
        return switch (node.*) {
            .ext => |*inode| inode.kind,
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

    pub fn open(system: *const FileSystem, node: *const Node) Content {
        return switch (system.*) {
            .ext => |*open_ext| .{ .ext = .{ .ext = open_ext, .inode = &node.ext } },
            .fat => |*open_fat| .{ .fat = .{ .fat = open_fat, .node = node.fat } },
        };
    }

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(content: *Content, buffer: []u8, offset: u64) Error!void {
        switch (content.*) {
            .ext => |*file| try file.read(buffer, offset),
            .fat => |*file| if (!try file.read(buffer, offset)) return error.Corrupt,
        }
    }
};

/// Iterates over the names of a directory.
pub const Names = union(enum) {
    ext: ext.Directory,
    fat: fat.Directory,

    pub fn open(system: *const FileSystem, node: *const Node) Error!Names {
        return switch (system.*) {
            .ext => |*open_ext| .{ .ext = try .open(open_ext, &node.ext) },
            .fat => |*open_fat| .{ .fat = try .open(open_fat, node.fat) },
        };
    }

    /// Returns null at the end; valid until the next call. Skips `.` and `..`.
    pub fn next(names: *Names) Error!?[]const u8 {
        switch (names.*) {
            .ext => |*directory| while (try directory.next()) |entry| {
                if (std.mem.eql(u8, entry.name, ".") or std.mem.eql(u8, entry.name, "..")) continue;
                return entry.name;
            },
            .fat => |*directory| if (try directory.next()) |entry| return entry.name,
        }
        return null;
    }
};
