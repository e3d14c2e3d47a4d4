//! The files of a container image: in a tar archive, or in a directory. Members of an archive are
//! found once, by their headers alone; a directory is asked by name.

const std = @import("std");
const store = @import("store");
const fault_module = @import("fault.zig");
const FileReader = @import("file_reader.zig");
const TarReader = @import("tar.zig");
const Allocator = std.mem.Allocator;
const Fault = fault_module.Fault;
const ImageSource = store.image_source.ImageSource;

/// Layers, lists and links; real archives have some hundred.
const entries_max = 20_000;
const links_followed_max = 8;
const path_size_max = 4096;

/// Opens files of a directory by their names, which never lead out of it.
pub const Directory = struct {
    context: *anyopaque,
    /// Null if there is no such file. The source stays open as long as the archive.
    openFn: *const fn (*anyopaque, name: []const u8) error{ReadFailed}!?ImageSource,
};

pub const Member = struct { source: ImageSource, first: u64, size: u64 };

const Found = union(enum) { file: struct { first: u64, size: u64 }, link: []const u8 };

pub const Archive = @This();

arena: Allocator,
place: union(enum) { file: ImageSource, directory: Directory },
members: std.StringHashMapUnmanaged(Found) = .empty,

/// Whether the start of a file is that of a tar archive.
pub fn isTar(head: []const u8) bool {
    return head.len >= 262 and std.mem.eql(u8, head[257..262], "ustar");
}

/// Finds the members of an archive.
pub fn openFile(arena: Allocator, source: ImageSource) Fault!Archive {
    var archive: Archive = .{ .arena = arena, .place = .{ .file = source } };
    var buffer: [16 << 10]u8 = undefined;
    var file: FileReader =
        .init(source, .{ .first = 0, .size = source.size.? }, null, &buffer);
    var scratch: std.heap.ArenaAllocator = .init(arena);
    defer scratch.deinit();
    var tar: TarReader = .{ .reader = &file.interface, .arena = &scratch };
    var entries: u32 = 0;
    while (try tar.next()) |entry| {
        // All of them, so that the paths of those that do not count stay few as well.
        entries += 1;
        if (entries > entries_max) return error.TooManyFiles;
        const path = try normal(arena, entry.path);
        const found: Found = switch (entry.kind) {
            .file => .{ .file = .{ .first = entry.offset, .size = entry.stored_size } },
            // docker save before version 25 writes a layer once and links to it.
            .symlink => .{ .link = try relative(arena, path, entry.target) },
            .hard_link => .{ .link = try normal(arena, entry.target) },
            else => continue,
        };
        if (entry.segments != null) continue;
        try archive.members.put(arena, path, found);
    }
    return archive;
}

pub fn openDirectory(arena: Allocator, directory: Directory) Archive {
    return .{ .arena = arena, .place = .{ .directory = directory } };
}

pub fn find(archive: *const Archive, path: []const u8) Fault!?Member {
    switch (archive.place) {
        .directory => |directory| {
            const source = try directory.openFn(directory.context, path) orelse return null;
            return .{ .source = source, .first = 0, .size = source.size.? };
        },
        .file => |source| {
            var name = try normal(archive.arena, path);
            for (0..links_followed_max) |_| switch (archive.members.get(name) orelse return null) {
                .file => |place| return .{
                    .source = source,
                    .first = place.first,
                    .size = place.size,
                },
                .link => |target| name = target,
            };
            return null;
        },
    }
}

/// Whether it is one of a container image: others have no list.
pub fn hasList(archive: *const Archive) bool {
    for ([_][]const u8{ "manifest.json", "index.json" }) |name|
        if (archive.find(name) catch null != null) return true;
    return false;
}

/// Reads a list whole.
pub fn read(archive: *const Archive, member: *const Member, size_max: usize) Fault![]const u8 {
    if (member.size > size_max) return error.ListTooLarge;
    const bytes = try archive.arena.alloc(u8, @intCast(member.size));
    var failed_at: u64 = 0;
    const count = member.source.read(bytes, member.first, &failed_at) catch
        return error.ReadFailed;
    return if (count == bytes.len) bytes else error.ReadFailed;
}

/// Without empty parts, `.` and `..`, which never lead out of the archive.
fn normal(arena: Allocator, path: []const u8) Fault![]const u8 {
    return relative(arena, "", path);
}

/// The path of what a link's directory and its target make.
fn relative(arena: Allocator, link: []const u8, target: []const u8) Fault![]const u8 {
    if (link.len + target.len > path_size_max) return error.PathInvalid;
    var path: [path_size_max + 1]u8 = undefined;
    var size: usize = 0;
    const directory = std.fs.path.dirname(link) orelse "";
    const is_absolute = std.mem.startsWith(u8, target, "/");
    for ([_][]const u8{ if (is_absolute) "" else directory, target }) |part| {
        var names = std.mem.tokenizeScalar(u8, part, '/');
        while (names.next()) |name| {
            if (std.mem.eql(u8, name, ".")) continue;
            if (std.mem.eql(u8, name, "..")) {
                size = std.mem.findScalarLast(u8, path[0..size], '/') orelse 0;
                continue;
            }
            if (size > 0) {
                path[size] = '/';
                size += 1;
            }
            @memcpy(path[size..][0..name.len], name);
            size += name.len;
        }
    }
    return arena.dupe(u8, path[0..size]);
}

test "links lead within the archive, whatever their parts are" {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    for ([_][3][]const u8{
        .{ "a/b/json", "../c/layer.tar", "a/c/layer.tar" },
        .{ "a/b", "../../../x", "x" },
        .{ "a/b", "/x//./y", "x/y" },
        .{ "a", "..", "" },
    }) |case| {
        const found = try relative(arena.allocator(), case[0], case[1]);
        try std.testing.expectEqualStrings(case[2], found);
    }
}
