//! Former manifests: `versions/<version>.former-<number>`. A version whose blocks were packed again
//! has another manifest, while devices go on reading by the one that they have opened. That one
//! keeps a name until nobody has it open, and the garbage collection keeps what it refers to.

const std = @import("std");
const Files = @import("files.zig");
const manifest_module = @import("../tree/manifest.zig");
const Uuid = @import("base").Uuid;

const dir = "versions";
const marker = ".former-";
/// Of one version: more than a machine has programs that read stores.
const formers_max = 1000;

/// Gives the manifest of a version a second name, which stays when the first one gets another
/// manifest. Throws `NoSpace` if too many are open.
pub fn keep(files: Files, version: Uuid) Files.Error!void {
    var names: [2]Files.Name = undefined;
    const manifest = manifest_module.fileName(version, &names[0]);
    for (0..formers_max) |number| {
        const former = std.mem.print(
            &names[1],
            dir ++ "/{f}" ++ marker ++ "{d}",
            .{ version, number },
        ) catch unreachable;
        return files.link(manifest, former) catch |err|
            if (err == error.Exists) continue else err;
    }
    return error.NoSpace;
}

/// Removes the former manifests that nobody has open, durably. Returns whether others are left of
/// this version, or of any. Requires the store's lock.
pub fn drop(files: Files, version: ?Uuid) Files.Error!bool {
    var name: Files.Name = undefined;
    var path: Files.Name = undefined;
    var at: []const u8 = "";
    var is_left = false;
    var is_removed = false;
    while (try next(files, at, &name)) |former| {
        at = former.name;
        if (version) |wanted| if (!former.version.eql(wanted)) continue;
        const of = pathOf(former.name, &path);
        const handle = try files.open(of, .read);
        defer files.close(handle);
        if (try files.tryLock(handle, true)) {
            try files.remove(of);
            is_removed = true;
        } else is_left = true;
    }
    if (is_removed) try files.syncDir(dir);
    return is_left;
}

pub const Former = struct { name: []const u8, version: Uuid };

/// Returns the next one after a name, in byte order ("" starts).
pub fn next(files: Files, after: []const u8, into: *Files.Name) Files.Error!?Former {
    var at_buffer: Files.Name = undefined;
    @memcpy(at_buffer[0..after.len], after);
    var at: []const u8 = at_buffer[0..after.len];
    while (try files.nextName(dir, at, into)) |found| {
        const text, _ = std.mem.cut(u8, found, marker) orelse {
            @memcpy(at_buffer[0..found.len], found);
            at = at_buffer[0..found.len];
            continue;
        };
        const version = Uuid.parse(text) catch {
            @memcpy(at_buffer[0..found.len], found);
            at = at_buffer[0..found.len];
            continue;
        };
        return .{ .name = found, .version = version };
    }
    return null;
}

pub fn pathOf(name: []const u8, into: *Files.Name) []const u8 {
    return std.mem.print(into, dir ++ "/{s}", .{name}) catch unreachable;
}
