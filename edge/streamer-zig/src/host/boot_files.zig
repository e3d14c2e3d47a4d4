//! The boot programs that this edge publishes: every regular file directly in one directory, read
//! at start. A request names one of them or nothing; no path of a device is ever opened.

const std = @import("std");
const assert = std.debug.assert;
const Io = std.Io;

pub const BootFiles = struct {
    names: std.ArrayList([]const u8) = .empty,
    contents: std.ArrayList([]const u8) = .empty,

    pub const count_max = 256;
    pub const file_size_max = 64 << 20;
    pub const name_size_max = 64;

    pub const LoadError = error{ DirectoryNotReadable, FileNotReadable, TooManyFiles, OutOfMemory };

    pub const none: BootFiles = .{};

    /// Everything lives in `arena`. What cannot be asked for (other kinds of files, long names) is
    /// left out.
    pub fn load(arena: std.mem.Allocator, io: Io, path: []const u8) LoadError!BootFiles {
        const dir = Io.Dir.cwd().openDir(
            io,
            path,
            .{ .iterate = true },
        ) catch return error.DirectoryNotReadable;
        defer dir.close(io);
        var files: BootFiles = .{};
        var iterator = dir.iterate();
        while (iterator.next(io) catch return error.DirectoryNotReadable) |entry| {
            if (entry.name.len > name_size_max or !isPlainName(entry.name)) continue;
            const stat = dir.statFile(io, entry.name, .{}) catch continue;
            if (stat.kind != .file) continue;
            if (files.names.items.len == count_max) return error.TooManyFiles;
            const bytes = dir.readFileAlloc(
                io,
                entry.name,
                arena,
                .limited(file_size_max),
            ) catch return error.FileNotReadable;
            const name = try arena.dupe(u8, entry.name);
            try files.names.append(arena, name);
            try files.contents.append(arena, bytes);
        }
        return files;
    }

    pub fn find(files: *const BootFiles, name: []const u8) ?[]const u8 {
        for (files.names.items, files.contents.items) |candidate, bytes| {
            if (std.mem.eql(u8, candidate, name)) return bytes;
        }
        return null;
    }
};

/// Names go into DHCP answers and URLs as they are.
fn isPlainName(name: []const u8) bool {
    if (name.len == 0 or name[0] == '.') return false;
    for (name) |byte| switch (byte) {
        'a'...'z', 'A'...'Z', '0'...'9', '.', '-', '_', '+' => {},
        else => return false,
    };
    return true;
}

const testing = std.testing;

test "regular files with plain names are published, nothing else" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    try tmp.dir.writeFile(io, .{ .sub_path = "undionly.kpxe", .data = "nbp" });
    try tmp.dir.writeFile(io, .{ .sub_path = ".hidden", .data = "x" });
    try tmp.dir.writeFile(io, .{ .sub_path = "a b", .data = "x" });
    try tmp.dir.createDirPath(io, "dir");
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var buffer: [4096]u8 = undefined;
    const path = buffer[0..try tmp.dir.realPath(io, &buffer)];
    const files = try BootFiles.load(arena.allocator(), io, path);
    try testing.expectEqual(1, files.names.items.len);
    try testing.expectEqualStrings("nbp", files.find("undionly.kpxe").?);
    try testing.expectEqual(null, files.find("dir"));
    try testing.expectError(
        error.DirectoryNotReadable,
        BootFiles.load(arena.allocator(), io, "/nonexistent"),
    );
}
