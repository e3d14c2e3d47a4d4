//! The maps of versions' files, kept in the store: `file-maps/VERSION`. A version never changes, so
//! neither does its map. A missing or damaged one is made again; it never prevents anything.

const std = @import("std");
const base = @import("base");
const image = @import("image");
const store_module = @import("store");
const Allocator = std.mem.Allocator;
const FileMap = image.FileMap;
const Files = store_module.Files;
const Uuid = base.Uuid;

const dir = "file-maps";
/// For all versions; a map of a usual system has one or two megabytes.
const count_max = 128;
const size_max = 192 << 20;

const Name = [dir.len + 1 + Uuid.text_size]u8;

fn nameOf(version: Uuid, into: *Name) []const u8 {
    return std.mem.print(into, dir ++ "/{f}", .{version}) catch unreachable;
}

/// The caller frees the map. Null: there is none that can be used.
pub fn load(
    gpa: Allocator,
    files: Files,
    manifest: *const store_module.Manifest,
) error{OutOfMemory}!?FileMap {
    var name: Name = undefined;
    const handle = files.open(nameOf(manifest.version, &name), .read) catch return null;
    defer files.close(handle);
    const size = files.size(handle) catch return null;
    if (size > size_max) return null;
    const bytes = try gpa.alloc(u8, @intCast(size));
    defer gpa.free(bytes);
    if (!(files.readWhole(handle, bytes, 0) catch return null)) return null;
    return FileMap.decode(gpa, bytes, &manifest.root.hash) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotUsable => null,
    };
}

/// A full disk, or one that may not be written, keeps none.
pub fn keep(
    gpa: Allocator,
    from: *store_module.Store,
    manifest: *const store_module.Manifest,
    map: *const FileMap,
) error{OutOfMemory}!void {
    const bytes = try map.encode(gpa, &manifest.root.hash);
    defer gpa.free(bytes);
    const files = from.files;
    files.makeDir(dir) catch |err| if (err != error.Exists) return;
    makeRoom(from);
    var name: Name = undefined;
    files.replace(nameOf(manifest.version, &name), bytes) catch {};
}

pub fn remove(files: Files, version: Uuid) void {
    var name: Name = undefined;
    // A store without it is as it should be.
    files.remove(nameOf(version, &name)) catch {};
}

/// Maps of versions that are gone go first, then any.
fn makeRoom(from: *store_module.Store) void {
    for ([_]bool{ true, false }) |is_gone_only| {
        if (count(from.files) < count_max) return;
        var names: [2]store_module.files.Name = undefined;
        var above: []const u8 = "";
        for (0..2 * count_max) |index| {
            const found = from.files.nextName(dir, above, &names[index % 2]) catch return;
            above = found orelse break;
            const version = Uuid.parse(above) catch continue;
            if (is_gone_only) {
                if (from.manifestOf(version)) |_| continue else |err| if (err != error.NotFound)
                    continue;
            }
            remove(from.files, version);
            if (!is_gone_only) return;
        }
    }
}

fn count(files: Files) u32 {
    var names: [2]store_module.files.Name = undefined;
    var above: []const u8 = "";
    var number: u32 = 0;
    while (number < 2 * count_max) : (number += 1) {
        const found = files.nextName(dir, above, &names[number % 2]) catch return number;
        above = found orelse return number;
    }
    return number;
}
