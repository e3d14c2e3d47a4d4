//! Boot profiles on disk: `profiles/VERSION-CLASS` in the store's directory, one per version and
//! hardware class. They are advice: a damaged or foreign one is removed, and never prevents a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const assert = std.debug.assert;

const BootProfile = core.profile.BootProfile;
const Files = store.Files;
const Uuid = base.Uuid;

pub const dir = "profiles";
/// In addition to the profile of all boots.
pub const classes_max = 8;
/// For all versions; at most 32 MiB.
pub const count_max = 256;
/// How many ancestors a version without a profile searches.
const ancestors_max = 8;

pub const Name = [dir.len + 1 + Uuid.text_size + 1 + 16]u8;

pub fn nameOf(version: Uuid, key: u64, into: *Name) []const u8 {
    // The buffer has exactly that size.
    return std.mem.print(into, dir ++ "/{f}-{x:0>16}", .{ version, key }) catch unreachable;
}

/// Identifies a profile to be read next, in the order of the names.
pub const ProfileName = struct { version: Uuid, key: u64 };

/// Iterates over the names of profiles and skips other files.
pub const Iterator = struct {
    files: Files,
    buffer: store.files.Name = undefined,
    /// Size of the name that was found last.
    size: usize = 0,

    /// For one version, or for all.
    pub fn init(files: Files, version: ?Uuid) Iterator {
        var iterator: Iterator = .{ .files = files };
        if (version) |id|
            iterator.size = (std.mem.print(&iterator.buffer, "{f}", .{id}) catch unreachable).len;
        return iterator;
    }

    pub fn next(iterator: *Iterator) ?ProfileName {
        assert(iterator.size <= iterator.buffer.len);
        var above: store.files.Name = undefined;
        while (true) {
            @memcpy(above[0..iterator.size], iterator.buffer[0..iterator.size]);
            const name = (iterator.files.nextName(
                dir,
                above[0..iterator.size],
                &iterator.buffer,
            ) catch return null) orelse return null;
            iterator.size = name.len;
            if (parse(name)) |found| return found;
        }
    }

    fn parse(name: []const u8) ?ProfileName {
        if (name.len != Uuid.text_size + 1 + 16 or name[Uuid.text_size] != '-') return null;
        return .{
            .version = Uuid.parse(name[0..Uuid.text_size]) catch return null,
            .key = std.fmt.parseInt(u64, name[Uuid.text_size + 1 ..], 16) catch return null,
        };
    }
};

pub const ReadError = error{ NotFound, Unreadable, Damaged, Foreign, OfSomethingElse };

/// Completes "The boot profile NAME ...".
pub fn sentence(err: ReadError) []const u8 {
    return switch (err) {
        error.NotFound => "does not exist",
        error.Unreadable => "cannot be read",
        error.Damaged => "is damaged; it is dropped",
        error.Foreign => "has a format that this edge does not know; it is dropped",
        error.OfSomethingElse => "belongs to something else; it is dropped",
    };
}

/// Reads a profile; removes one that is there and cannot be used.
pub fn read(
    files: Files,
    found: ProfileName,
    into: *BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
) ReadError!BootProfile.Class {
    var name: Name = undefined;
    const bytes = readFile(files, nameOf(found.version, found.key, &name), buffer) catch |err|
        return if (err == error.NotFound) error.NotFound else error.Unreadable;
    errdefer remove(files, found);
    const named = try into.decode(bytes);
    if (!named.version.eql(found.version) or named.class.key != found.key)
        return error.OfSomethingElse;
    return named.class;
}

fn readFile(files: Files, path: []const u8, buffer: []u8) store.files.Error![]u8 {
    const handle = try files.open(path, .read);
    defer files.close(handle);
    return buffer[0..try files.read(handle, buffer, 0)];
}

/// Writes the whole file durably, or leaves it unchanged.
pub fn write(
    files: Files,
    named: *const BootProfile.Named,
    profile: *const BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
) store.files.Error!void {
    files.makeDir(dir) catch |err| if (err != error.Exists) return err;
    var name: Name = undefined;
    return files.replace(
        nameOf(named.version, named.class.key, &name),
        profile.encode(named, buffer),
    );
}

pub fn remove(files: Files, found: ProfileName) void {
    var name: Name = undefined;
    // A file that cannot be removed is refused again.
    files.remove(nameOf(found.version, found.key, &name)) catch {};
}

/// Removes the profiles of a deleted version. Running edges drop them within a second.
pub fn removeAll(files: Files, version: Uuid, random: Random) void {
    if (count(files, version) == 0) return;
    changeGeneration(files, random) catch {};
    var iterator: Iterator = .init(files, version);
    while (iterator.next()) |found| {
        if (!found.version.eql(version)) break;
        remove(files, found);
    }
    changeGeneration(files, random) catch {};
}

/// Clears the profiles of one version, or of all; returns how many there were. An empty profile of
/// all boots remains, so that the version does not inherit that of its parent again. Running edges
/// drop them within a second.
pub fn clear(
    files: Files,
    version: ?Uuid,
    profile: *BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
    random: Random,
) store.files.Error!u32 {
    if (count(files, version) == 0) return 0;
    // Before: what an edge writes in the meantime belongs to the old profile. After: an edge that
    // has looked in the meantime looks again.
    try changeGeneration(files, random);
    var number: u32 = 0;
    var iterator: Iterator = .init(files, version);
    while (iterator.next()) |found| {
        if (version) |id| if (!found.version.eql(id)) break;
        if (read(files, found, profile, buffer)) |_| {
            number += @intFromBool(profile.count > 0);
        } else |_| {}
        try forget(files, found, profile, buffer);
    }
    try changeGeneration(files, random);
    return number;
}

/// Removes one profile.
pub fn forget(
    files: Files,
    found: ProfileName,
    profile: *BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
) store.files.Error!void {
    profile.* = .{};
    try write(files, &.{ .version = found.version, .class = .any }, profile, buffer);
    if (found.key != BootProfile.Class.any.key) remove(files, found);
}

/// Changes whenever somebody has removed profiles: a running edge has them in memory, too.
pub const Generation = [16]u8;
const generation_name = dir ++ "/generation";

/// Zeros if nobody has removed any, or if the file cannot be read.
pub fn generationOf(files: Files) Generation {
    var generation: Generation = @splat(0);
    const bytes = readFile(files, generation_name, &generation) catch return @splat(0);
    return if (bytes.len == generation.len) generation else @splat(0);
}

/// Fills a buffer with bytes that no other process draws.
pub const Random = *const fn (buffer: []u8) void;

fn changeGeneration(files: Files, random: Random) store.files.Error!void {
    var generation: Generation = undefined;
    random(&generation);
    return files.replace(generation_name, &generation);
}

/// Returns whether one more profile fits; profiles of versions that are no longer in the store are
/// removed for it.
pub fn makeRoom(files: Files, of_store: ?*store.Store) bool {
    if (count(files, null) < count_max) return true;
    const from = of_store orelse return false;
    var iterator: Iterator = .init(files, null);
    while (iterator.next()) |found| {
        if (from.manifestOf(found.version)) |_| {} else |err| if (err == error.NotFound)
            remove(files, found);
    }
    return count(files, null) < count_max;
}

/// For one version, or for all.
pub fn count(files: Files, version: ?Uuid) u32 {
    var number: u32 = 0;
    var iterator: Iterator = .init(files, version);
    while (iterator.next()) |found| {
        if (version) |id| if (!found.version.eql(id)) break;
        number += 1;
    }
    return number;
}

/// Gives a version without a profile those of its nearest ancestor that has some, without the
/// blocks that have changed since. Returns whether there was one.
pub fn carry(
    from: *store.Store,
    version: Uuid,
    profile: *BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
) bool {
    const files = from.files;
    const own = from.manifestOf(version) catch return false;
    var parent = own.parent;
    for (0..ancestors_max) |_| {
        if (parent.eql(.zero)) return false;
        const manifest = from.manifestOf(parent) catch return false;
        if (count(files, parent) > 0) return carryFrom(from, &own, &manifest, profile, buffer);
        parent = manifest.parent;
    }
    return false;
}

fn carryFrom(
    from: *store.Store,
    own: *const store.Manifest,
    parent: *const store.Manifest,
    profile: *BootProfile,
    buffer: *[BootProfile.file_size_max]u8,
) bool {
    const files = from.files;
    var carried = false;
    var iterator: Iterator = .init(files, parent.version);
    while (iterator.next()) |found| {
        if (!found.version.eql(parent.version)) break;
        const class = read(files, found, profile, buffer) catch continue;
        profile.carry(parent.version);
        var comparison: store.compare.Comparison(*BootProfile) =
            .{ .nodes = &from.nodes, .context = profile, .report = dropRange };
        comparison.run(
            .{ .root = parent.root, .level = parent.rootLevel() },
            .{ .root = own.root, .level = own.rootLevel() },
        ) catch return carried;
        if (!makeRoom(files, from)) return carried;
        write(files, &.{ .version = own.version, .class = class }, profile, buffer) catch
            return carried;
        carried = true;
    }
    return carried;
}

fn dropRange(profile: *BootProfile, range: store.compare.Range) void {
    profile.drop(range.first, range.count);
}
