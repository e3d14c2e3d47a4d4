//! Copies a store into another directory: versions with their boot files, boot profiles, the key
//! and the highest counter. A version appears in the destination, by its manifest, when all of it
//! is durable there and was read back. So the destination has whole versions at any moment,
//! whatever interrupts the copy, and the next copy adds what is missing.
//!
//! The source may be changed meanwhile. A version is opened while it is copied, which keeps it, and
//! the places of the source are never used twice. The destination has no file `lock`, so no command
//! changes it; the caller makes sure that one copy at a time works on it.

const std = @import("std");
const base = @import("base");
const boot_bundle = @import("../boot_bundle.zig");
const Collection = @import("../collect.zig");
const counter_file = @import("../files/counter_file.zig");
const Files = @import("../files/files.zig");
const manifest_module = @import("../tree/manifest.zig");
const PlaceWriter = @import("place_writer.zig");
const store_dir = @import("../files/store_dir.zig");
const TreeCopy = @import("tree_copy.zig");
const Manifest = manifest_module.Manifest;
const Store = store_dir.Store;
const Uuid = base.Uuid;

/// Files.Error: of the destination.
pub const Error = TreeCopy.Error || error{
    /// The list of versions, a boot profile or the key of the source cannot be read.
    SourceFailed,
};

pub const Problem = TreeCopy.Problem;
pub const ManifestError = store_dir.VersionError || error{Locked};

pub const Finding = union(enum) {
    /// Is whole in the destination now, with so many bytes written for it.
    copied: struct { version: Uuid, bytes: u64 },
    /// Is no longer in the source, and was removed.
    removed: Uuid,
    /// Was not copied: data of the disk is damaged.
    damaged: struct { version: Uuid, problem: TreeCopy.Problem },
    /// Was not copied: so many further places are damaged.
    damaged_more: struct { version: Uuid, count: u64 },
    /// Was not copied: its manifest cannot be used.
    unreadable: struct { version: Uuid, why: ManifestError },
    /// Was not copied: its kernel or initramfs is damaged or missing.
    boot_file: struct { version: Uuid, is_kernel: bool },
};

pub const Options = struct {
    pulse: TreeCopy.Pulse,
    context: *anyopaque,
    report: *const fn (*anyopaque, *const Finding) void,
    evict: ?PlaceWriter.Evict = null,
    /// Reads all of the destination again, and replaces what is damaged there.
    checks_all: bool = false,
    /// Removes versions that the source no longer has, and frees their space.
    removes: bool = true,
};

pub const Result = struct {
    /// Versions that the destination has.
    versions: u64 = 0,
    copied_versions: u64 = 0,
    removed_versions: u64 = 0,
    copied_bytes: u64 = 0,
    checked_bytes: u64 = 0,
    /// Versions that were not copied.
    problems: u64 = 0,
};

pub const StoreCopy = @This();

gpa: std.mem.Allocator,
from: *Store,
to: *Store,
options: Options,
tree: TreeCopy,
result: Result = .{},
/// Versions of the destination that are the same in the source need no look.
is_trusted: bool,
/// Versions of the destination were removed or replaced.
has_garbage: bool = false,

/// Copies everything; `to` comes from `openTarget`.
pub fn run(
    gpa: std.mem.Allocator,
    from: *Store,
    to: *Store,
    options: Options,
) Error!Result {
    var copy: StoreCopy = .{
        .gpa = gpa,
        .from = from,
        .to = to,
        .options = options,
        .tree = try .init(gpa, from, to, options.pulse, options.evict),
        .is_trusted = !options.checks_all,
    };
    defer copy.tree.deinit();
    try copy.copyKey();
    try copy.holdAll();
    try copy.copyCounter();
    try copy.copyVersions();
    try copy.copyProfiles();
    // A version that was sealed meanwhile has a higher one.
    try copy.copyCounter();
    if (options.removes) try copy.removeOthers();
    copy.result.copied_bytes = copy.tree.copied;
    copy.result.checked_bytes = copy.tree.check.checked;
    return copy.result;
}

/// Notes what the destination has. A damaged destination is not trusted: everything is compared,
/// and damage replaced.
fn holdAll(copy: *StoreCopy) Error!void {
    if (!copy.is_trusted) return;
    var id: ?Uuid = null;
    while (try copy.to.nextVersion(id)) |found| {
        id = found;
        const manifest = copy.to.manifestOf(found) catch |err| switch (err) {
            error.TooManyFiles => return error.TooManyFiles,
            else => continue,
        };
        copy.tree.hold(&manifest) catch |err| switch (err) {
            error.Damaged, error.ReadFailed => {
                copy.is_trusted = false;
                return copy.tree.forget();
            },
            else => |other| return other,
        };
    }
}

fn copyVersions(copy: *StoreCopy) Error!void {
    var id: ?Uuid = null;
    while (copy.from.nextVersion(id) catch return error.SourceFailed) |found| {
        id = found;
        var version = copy.from.openVersion(found) catch |err| {
            // Deleted meanwhile.
            if (err == error.NotFound) continue;
            copy.fail(&.{ .unreadable = .{ .version = found, .why = err } });
            continue;
        };
        defer version.close();
        if (try copy.copyVersion(&version)) {
            copy.result.versions += 1;
        } else copy.result.problems += 1;
    }
}

/// Returns false if the version is not in the destination as it is in the source.
fn copyVersion(copy: *StoreCopy, version: *store_dir.OpenVersion) Error!bool {
    const manifest = &version.manifest;
    const id = manifest.version;
    var bytes: manifest_module.Bytes = undefined;
    const is_read = copy.from.files.readWhole(version.handle, &bytes, 0) catch
        return error.SourceFailed;
    if (!is_read) return error.SourceFailed;
    const is_same = copy.hasManifest(id, &bytes);
    if (is_same and copy.is_trusted) return true;
    const copied_before = copy.tree.copied;
    const problems = try copy.tree.run(manifest);
    for (problems.named.constSlice()) |problem|
        copy.report(&.{ .damaged = .{ .version = id, .problem = problem } });
    const named = problems.named.constSlice().len;
    if (problems.count > named) copy.report(
        &.{ .damaged_more = .{ .version = id, .count = problems.count - named } },
    );
    if (problems.count > 0) {
        if (problems.named.constSlice()[0].side == .source) return false;
        // What was read back counts as there, also above what is damaged.
        copy.tree.forget();
        try copy.holdAll();
        return false;
    }
    for ([_]?manifest_module.BootFile{ manifest.kernel, manifest.initrd }, 0..) |file, index| {
        const given = if (file) |*of| of else continue;
        if (try copy.copyBootFile(given)) continue;
        copy.report(&.{ .boot_file = .{ .version = id, .is_kernel = index == 0 } });
        return false;
    }
    if (manifest.has_units) copy.to.format = @max(copy.to.format, store_dir.unit_format);
    if (!is_same) {
        var name: Files.Name = undefined;
        // Its former places are needed no more.
        copy.has_garbage = copy.has_garbage or copy.isThere(manifest_module.fileName(id, &name));
        try copy.to.files.replace(manifest_module.fileName(id, &name), &bytes);
        copy.result.copied_versions += 1;
        const written = copy.tree.copied - copied_before;
        copy.report(&.{ .copied = .{ .version = id, .bytes = written } });
    }
    return true;
}

fn hasManifest(copy: *StoreCopy, id: Uuid, bytes: *const manifest_module.Bytes) bool {
    var name: Files.Name = undefined;
    const handle = copy.to.files.open(manifest_module.fileName(id, &name), .read) catch
        return false;
    defer copy.to.files.close(handle);
    var found: manifest_module.Bytes = undefined;
    const is_read = copy.to.files.readWhole(handle, &found, 0) catch return false;
    return is_read and std.mem.eql(u8, &found, bytes);
}

fn isThere(copy: *StoreCopy, path: []const u8) bool {
    copy.to.files.close(copy.to.files.open(path, .read) catch return false);
    return true;
}

const SourceFile = struct {
    files: Files,
    handle: Files.Handle,

    fn read(context: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
        const file: *SourceFile = @ptrCast(@alignCast(context));
        return file.files.read(file.handle, buffer, offset) catch error.SourceFailed;
    }
};

/// Returns false if it is damaged or missing in the source.
fn copyBootFile(copy: *StoreCopy, file: *const manifest_module.BootFile) Error!bool {
    if (boot_bundle.check(copy.to.files, file)) |_| return true else |_| {}
    boot_bundle.check(copy.from.files, file) catch return false;
    var name: Files.Name = undefined;
    const handle = copy.from.files.open(boot_bundle.nameOf(file, &name), .read) catch return false;
    var source: SourceFile = .{ .files = copy.from.files, .handle = handle };
    defer source.files.close(handle);
    const bytes: boot_bundle.Bytes = .{ .context = &source, .read = SourceFile.read };
    const taken = boot_bundle.take(copy.to.files, bytes) catch |err| switch (err) {
        error.TooLarge, error.Empty, error.SourceFailed => return false,
        else => |other| return other,
    };
    copy.tree.copied += taken.size;
    return std.mem.eql(u8, &taken.hash, &file.hash);
}

fn report(copy: *StoreCopy, finding: *const Finding) void {
    copy.options.report(copy.options.context, finding);
}

fn fail(copy: *StoreCopy, finding: *const Finding) void {
    copy.result.problems += 1;
    copy.report(finding);
}

/// Boot profiles are small, and worth nothing if they are damaged.
fn copyProfiles(copy: *StoreCopy) Error!void {
    const buffer = try copy.gpa.alloc(u8, profile_size_max);
    defer copy.gpa.free(buffer);
    var name: Files.Name = undefined;
    var at_buffer: Files.Name = undefined;
    var at: []const u8 = "";
    while (copy.from.files.nextName(profiles, at, &name) catch |err|
        if (err == error.NotFound) null else return error.SourceFailed) |found|
    {
        @memcpy(at_buffer[0..found.len], found);
        at = at_buffer[0..found.len];
        var path_buffer: Files.Name = undefined;
        const path = std.mem.print(&path_buffer, profiles ++ "/{s}", .{at}) catch continue;
        // Of a profile that is being written.
        if (std.mem.endsWith(u8, at, ".new") or path.len + 4 > path_buffer.len) continue;
        const bytes = readSmall(copy.from.files, path, buffer) catch continue orelse continue;
        var before: [64 << 10]u8 = undefined;
        const there = readSmall(copy.to.files, path, &before) catch null orelse "";
        if (!std.mem.eql(u8, there, bytes)) try copy.to.files.replace(path, bytes);
    }
}

const profiles = "profiles";
const profile_size_max = 16 << 20;

/// Returns null if the file does not fit.
fn readSmall(files: Files, path: []const u8, buffer: []u8) Files.Error!?[]const u8 {
    const handle = try files.open(path, .read);
    defer files.close(handle);
    const size = try files.size(handle);
    if (size > buffer.len) return null;
    const bytes = buffer[0..@intCast(size)];
    return if (try files.readWhole(handle, bytes, 0)) bytes else null;
}

fn copyKey(copy: *StoreCopy) Error!void {
    var buffer: [64]u8 = undefined;
    const path = store_dir.key_name;
    const bytes = readSmall(copy.from.files, path, &buffer) catch null orelse
        return error.SourceFailed;
    var before: [64]u8 = undefined;
    const there = readSmall(copy.to.files, path, &before) catch null orelse "";
    if (!std.mem.eql(u8, there, bytes)) try copy.to.files.replace(path, bytes);
}

/// The destination's counter is at least that of the source, and never falls.
fn copyCounter(copy: *StoreCopy) Error!void {
    const counter = counter_file.read(copy.from.files) catch return error.SourceFailed;
    const there = try counter_file.read(copy.to.files);
    const wanted = counter orelse return;
    if (wanted > there orelse 0) try counter_file.write(copy.to.files, wanted);
}

/// Removes versions that the source does not have, and frees what only they had.
fn removeOthers(copy: *StoreCopy) Error!void {
    const to = copy.to;
    var id: ?Uuid = null;
    while (try to.nextVersion(id)) |found| {
        id = found;
        var name: Files.Name = undefined;
        const path = manifest_module.fileName(found, &name);
        if (copy.from.files.open(path, .read)) |handle| {
            copy.from.files.close(handle);
            continue;
        } else |err| if (err != error.NotFound) continue;
        try to.files.remove(path);
        copy.has_garbage = true;
        copy.result.removed_versions += 1;
        copy.report(&.{ .removed = found });
    }
    if (!copy.has_garbage) return;
    try to.files.syncDir("versions");
    try copy.collect();
}

/// Frees what the versions of the destination do not need.
fn collect(copy: *StoreCopy) Error!void {
    var change: store_dir.Change = .{ .store = copy.to, .lock = undefined };
    var collection = Collection.begin(copy.gpa, &change) catch |err| return asOwn(err);
    defer collection.end();
    while (collection.step(collect_step) catch |err| return asOwn(err))
        try copy.options.pulse.call(copy.options.pulse.context, copy.tree.seen);
}

const collect_step = 64 << 20;

/// Nothing of a damaged destination is freed, and a check of all of it repairs it.
fn asOwn(problem: Collection.Error) Error!void {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.NoSpace => error.NoSpace,
        error.ReadOnly => error.ReadOnly,
        error.Denied => error.Denied,
        error.TooManyFiles => error.TooManyFiles,
        error.DiskFailed, error.ReadFailed => error.DiskFailed,
        else => {},
    };
}
