//! Where the copies of write layers lie below a store's directory: `cache-copies/own/LAYER` has
//! what this edge offers to others of its layers, by their names, and `cache-copies/held/EDGE/ID`
//! what it keeps of the layers of another edge, by their ids: a layer that was dropped, or lost
//! with its disk, and made again has the same name, and does not replace the copy of the former
//! one. None of it is a layer: no device is ever served from it.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const Uuid = base.Uuid;

pub const parent = "cache-copies";
pub const own_parent = parent ++ "/own";
pub const held_parent = parent ++ "/held";

pub fn ownDir(layer: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, own_parent ++ "/{f}", .{layer}) catch unreachable;
}

pub fn heldEdgeDir(edge: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, held_parent ++ "/{f}", .{edge}) catch unreachable;
}

pub fn heldDir(edge: Uuid, layer_id: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, held_parent ++ "/{f}/{f}", .{ edge, layer_id }) catch unreachable;
}

pub fn join(into: *Files.Name, dir: []const u8, name: []const u8) []const u8 {
    // Both are short.
    return std.mem.print(into, "{s}/{s}", .{ dir, name }) catch unreachable;
}

/// Makes a directory and those above it that may be missing, with durable names.
pub fn makeDirs(files: Files, dir: []const u8) Files.Error!void {
    var at: usize = 0;
    while (at < dir.len) {
        const above = dir[0..at];
        const end = std.mem.findScalarPos(u8, dir, at + 1, '/') orelse dir.len;
        if (files.makeDir(dir[0..end])) |_| try files.syncDir(above) else |err| {
            if (err != error.Exists) return err;
        }
        at = end;
    }
}

/// Lists the directories that have ids as names, in their order.
pub const Iterator = struct {
    files: Files,
    dir: []const u8,
    name: Files.Name = undefined,
    size: usize = 0,

    pub fn next(walk: *Iterator) Files.Error!?Uuid {
        while (true) {
            const name = walk.files.nextName(
                walk.dir,
                walk.name[0..walk.size],
                &walk.name,
            ) catch |err| return if (err == error.NotFound) null else err;
            const found = name orelse return null;
            walk.size = found.len;
            return Uuid.parse(found) catch continue;
        }
    }
};

/// Removes files that may be missing, and their directory.
pub fn removeDir(
    files: Files,
    dir: []const u8,
    comptime names: []const []const u8,
) Files.Error!void {
    inline for (names) |name| {
        var buffer: Files.Name = undefined;
        files.remove(join(&buffer, dir, name)) catch |err| if (err != error.NotFound) return err;
    }
    files.remove(dir) catch |err| if (err != error.NotFound) return err;
}

/// What one process at a time does with copies.
pub const Subject = enum { own, held };

/// Returns null while another process has the lock, which ends with the handle.
pub fn lock(files: Files, subject: Subject) Files.Error!?Files.Handle {
    try makeDirs(files, parent);
    const name = switch (subject) {
        .own => parent ++ "/own.lock",
        .held => parent ++ "/held.lock",
    };
    const handle = files.open(name, .write) catch |err| blk: {
        if (err != error.NotFound) return err;
        break :blk files.create(name) catch |problem|
            if (problem == error.Exists) try files.open(name, .write) else return problem;
    };
    errdefer files.close(handle);
    if (try files.tryLock(handle, true)) return handle;
    files.close(handle);
    return null;
}
