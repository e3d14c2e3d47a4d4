//! The disk that the devices of a version read: a plain file, or a version of the store, whose
//! blocks are verified before they are sent.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const VersionDisk = union(enum) {
    file: store.StoreFile,
    version: store.OpenVersion,

    /// In bytes; a multiple of 512, not 0.
    pub fn size(disk: *const VersionDisk) u64 {
        return switch (disk.*) {
            .file => |*file| file.size,
            .version => |*version| version.manifest.disk_size,
        };
    }

    /// The file itself of a version that is one; null: its blocks are in the store.
    pub fn plainFile(disk: *const VersionDisk) ?store.StoreFile {
        return switch (disk.*) {
            .file => |file| file,
            .version => null,
        };
    }

    /// Root hash of the version; zeros if it has none (a plain file).
    pub fn root(disk: *const VersionDisk) [32]u8 {
        return switch (disk.*) {
            .file => @splat(0),
            .version => |*version| version.manifest.root.hash,
        };
    }

    /// Valid as long as the disk does not move.
    pub fn source(disk: *VersionDisk) store.BlockSource {
        return switch (disk.*) {
            .file => |*file| file.source(),
            .version => |*version| version.reader.source(),
        };
    }

    /// Another thread has read the range with a `HeldDisk` of this disk: what it verified need not
    /// be verified here.
    pub fn markChecked(disk: *VersionDisk, offset: u64, bytes: u64) void {
        switch (disk.*) {
            .file => {},
            .version => |*version| version.reader.markChecked(offset, bytes),
        }
    }

    /// Duplicates the disk for another thread that keeps it; a version still has to be given that
    /// thread's nodes and files.
    pub fn copy(disk: *const VersionDisk) error{SystemCallFailed}!VersionDisk {
        var other = disk.*;
        switch (other) {
            .file => |*file| file.fd = try duplicate(file.fd),
            .version => |*version| version.handle = @fromBackingInt(try duplicate(
                @backingInt(version.handle),
            )),
        }
        return other;
    }

    pub fn close(disk: *VersionDisk) void {
        switch (disk.*) {
            .file => |*file| file.close(),
            .version => |*version| version.close(),
        }
    }
};

/// The disk for another thread: open and unchanged until it is released, whatever becomes of the
/// `VersionDisk` in the meantime.
pub const HeldDisk = union(enum) {
    file: store.StoreFile,
    version: Version,

    pub const Version = struct {
        id: base.Uuid,
        files: store.Files,
        /// The version's manifest: an open version is not deleted.
        fd: i32,
        root: store.block.Entry,
        root_level: u8,
        disk_size: u64,
    };

    pub fn init(disk: *const VersionDisk) error{SystemCallFailed}!HeldDisk {
        switch (disk.*) {
            .file => |*file| {
                var held = file.*;
                held.fd = try duplicate(file.fd);
                return .{ .file = held };
            },
            .version => |*version| return .{ .version = .{
                .id = version.manifest.version,
                .files = version.store.files,
                .fd = try duplicate(@backingInt(version.handle)),
                .root = version.reader.root,
                .root_level = version.reader.root_level,
                .disk_size = version.reader.disk_size,
            } },
        }
    }

    pub fn letGo(held: *HeldDisk) void {
        switch (held.*) {
            .file => |*file| file.close(),
            .version => |*version| sys.close(version.fd),
        }
        held.* = undefined;
    }
};

fn duplicate(fd: i32) error{SystemCallFailed}!i32 {
    return @intCast(sys.check(linux.fcntl(fd, linux.F.DUPFD_CLOEXEC, 0)) catch
        return error.SystemCallFailed);
}
