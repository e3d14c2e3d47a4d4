//! The copy of a write layer of another edge, kept whole while a newer one is fetched. What has
//! changed comes to a file beside the copy; `commit` names the list of all of it, and from then on
//! the changes are brought into the copy, however often the edge is killed meanwhile. Whoever uses
//! a copy first finishes that. Every area is compared with its SHA-256 wherever it comes from: the
//! network, this disk, or an earlier attempt.
//!
//!     list, areas             the copy
//!     list.next, areas.next   what is fetched
//!     list.whole              all of it is there: `areas` becomes what this list says

const std = @import("std");
const base = @import("base");
const AreaList = @import("area_list.zig");
const Files = @import("../files/files.zig");
const layer_file = @import("../layers/layer_file.zig");
const layer_head = @import("../layers/head.zig");
const names = @import("names.zig");

const Entry = AreaList.Entry;
const block_size = AreaList.block_size;

pub const HeldCopy = @This();

const list_name = "list";
const areas_name = "areas";
const next_list_name = "list.next";
const next_areas_name = "areas.next";
const whole_list_name = "list.whole";

gpa: std.mem.Allocator,
files: Files,
/// Outlives this.
dir: []const u8,
/// What is fetched; owned.
list: AreaList,
/// Null: there is no copy yet.
areas: ?Files.Handle,
next_areas: Files.Handle,
buffer: *[AreaList.area_size]u8,

/// Begins to fetch what a list names, or continues. Takes the list, also after a failure.
pub fn begin(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    list: AreaList,
) (AreaList.ReadError)!HeldCopy {
    var taken = list;
    errdefer taken.deinit(gpa);
    try names.makeDirs(files, dir);
    try complete(gpa, files, dir);
    var name: Files.Name = undefined;
    try taken.write(files, names.join(&name, dir, next_list_name));
    const areas = files.open(names.join(&name, dir, areas_name), .read) catch |err|
        if (err == error.NotFound) null else return err;
    errdefer if (areas) |handle| files.close(handle);
    const next = try openOrCreate(files, names.join(&name, dir, next_areas_name));
    errdefer files.close(next);
    try files.setSize(next, taken.areasSize());
    return .{
        .gpa = gpa,
        .files = files,
        .dir = dir,
        .list = taken,
        .areas = areas,
        .next_areas = next,
        .buffer = try gpa.create([AreaList.area_size]u8),
    };
}

pub fn deinit(held: *HeldCopy) void {
    if (held.areas) |handle| held.files.close(handle);
    held.files.close(held.next_areas);
    held.gpa.destroy(held.buffer);
    held.list.deinit(held.gpa);
    held.* = undefined;
}

/// Tells whether an area has to be fetched: neither the copy nor an earlier attempt has it.
pub fn needs(held: *HeldCopy, entry: *const Entry) Files.Error!bool {
    if (entry.isZeros()) return false;
    if (held.areas) |handle| if (try held.has(handle, entry)) return false;
    return !try held.has(held.next_areas, entry);
}

/// A disk that cannot read an area gets it again.
fn has(held: *HeldCopy, handle: Files.Handle, entry: *const Entry) Files.Error!bool {
    const bytes = entry.readFrom(held.files, handle, held.buffer) catch |err|
        return if (err == error.DiskFailed) false else err;
    return if (bytes) |found| entry.isContent(found) else false;
}

/// Keeps an area that was fetched. Returns false if the bytes are not those of the list.
pub fn put(held: *HeldCopy, entry: *const Entry, bytes: []const u8) Files.Error!bool {
    if (!entry.isContent(bytes)) return false;
    try entry.writeTo(held.files, held.next_areas, bytes);
    return true;
}

/// Every area is there: the copy becomes what the list says.
pub fn commit(held: *HeldCopy) AreaList.ReadError!void {
    const files = held.files;
    try files.sync(held.next_areas);
    // Its name, before the list says that it is there.
    try files.syncDir(held.dir);
    var from: Files.Name = undefined;
    var to: Files.Name = undefined;
    try files.rename(
        names.join(&from, held.dir, next_list_name),
        names.join(&to, held.dir, whole_list_name),
    );
    try files.syncDir(held.dir);
    return complete(held.gpa, files, held.dir);
}

/// Brings changes that came whole into the copy, if there are any.
pub fn complete(gpa: std.mem.Allocator, files: Files, dir: []const u8) AreaList.ReadError!void {
    var name: Files.Name = undefined;
    const whole_path = names.join(&name, dir, whole_list_name);
    var whole: AreaList = AreaList.read(gpa, files, whole_path) catch |err| switch (err) {
        error.NotFound => return,
        // The disk has lost it. What is fetched next compares every area anyhow.
        error.Damaged => return files.remove(whole_path),
        else => |other| return other,
    };
    defer whole.deinit(gpa);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    const areas = try openOrCreate(files, names.join(&name, dir, areas_name));
    {
        defer files.close(areas);
        if (files.open(names.join(&name, dir, next_areas_name), .read)) |next| {
            defer files.close(next);
            try bringOver(files, &whole, next, areas, buffer);
        } else |err| if (err != error.NotFound) return err;
        try dropOthers(gpa, files, dir, &whole, areas);
        try files.setSize(areas, whole.areasSize());
        try files.sync(areas);
    }
    try files.syncDir(dir);
    var from: Files.Name = undefined;
    try files.rename(
        names.join(&from, dir, whole_list_name),
        names.join(&name, dir, list_name),
    );
    // A crash that forgets this name has it done once more: all of `areas` is on the disk.
    files.remove(names.join(&name, dir, next_areas_name)) catch |err|
        if (err != error.NotFound) return err;
}

/// What lies in `next` may also be of an earlier attempt.
fn bringOver(
    files: Files,
    whole: *const AreaList,
    next: Files.Handle,
    areas: Files.Handle,
    buffer: *[AreaList.area_size]u8,
) Files.Error!void {
    for (whole.entries()) |*entry| {
        if (entry.isZeros()) continue;
        const found = try files.nextData(next, entry.offset()) orelse return;
        if (found >= entry.offset() + AreaList.area_size) continue;
        const bytes = try entry.readFrom(files, next, buffer) orelse continue;
        if (entry.isContent(bytes)) try entry.writeTo(files, areas, bytes);
    }
}

/// Areas that the layer has no more, or that became zeros, take no space.
fn dropOthers(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    whole: *const AreaList,
    areas: Files.Handle,
) AreaList.ReadError!void {
    var name: Files.Name = undefined;
    var former = AreaList.read(gpa, files, names.join(&name, dir, list_name)) catch |err|
        switch (err) {
            error.NotFound, error.Damaged, error.NewerFormat => return,
            else => |other| return other,
        };
    defer former.deinit(gpa);
    const size = try files.size(areas);
    for (former.entries()) |*entry| {
        if (entry.offset() >= size) continue;
        if (whole.find(entry.index())) |now| if (!now.isZeros()) continue;
        const length = @min(AreaList.area_size, size - entry.offset());
        try files.punch(areas, entry.offset(), length);
    }
}

fn openOrCreate(files: Files, name: []const u8) Files.Error!Files.Handle {
    return files.open(name, .write) catch |err|
        if (err == error.NotFound) files.create(name) else err;
}

/// Lists all copies of other edges' layers, also those that have not come whole.
pub const Walk = struct {
    files: Files,
    edges: ?names.Iterator = null,
    owner: base.Uuid = .zero,
    layers: ?names.Iterator = null,
    parent: Files.Name = undefined,

    pub const Found = struct {
        owner: base.Uuid,
        layer_id: base.Uuid,

        pub fn dir(found: *const Found, into: *Files.Name) []const u8 {
            return names.heldDir(found.owner, found.layer_id, into);
        }
    };

    /// It must not move after the first call.
    pub fn next(walk: *Walk) Files.Error!?Found {
        if (walk.edges == null) walk.edges = .{ .files = walk.files, .dir = names.held_parent };
        while (true) {
            if (walk.layers) |*layers| if (try layers.next()) |id|
                return .{ .owner = walk.owner, .layer_id = id };
            walk.owner = try walk.edges.?.next() orelse return null;
            const dir = names.heldEdgeDir(walk.owner, &walk.parent);
            walk.layers = .{ .files = walk.files, .dir = dir };
        }
    }
};

/// Returns what the copy in `dir` says of itself; `NotFound`: none is whole.
pub fn readHeader(files: Files, dir: []const u8) (Files.Error || AreaList.Problem)!AreaList.Header {
    var name: Files.Name = undefined;
    const handle = try files.open(names.join(&name, dir, list_name), .read);
    defer files.close(handle);
    return AreaList.readHeader(files, handle);
}

/// Returns the list of the copy in `dir`; `NotFound`: none is whole.
pub fn readList(gpa: std.mem.Allocator, files: Files, dir: []const u8) AreaList.ReadError!AreaList {
    var name: Files.Name = undefined;
    return .read(gpa, files, names.join(&name, dir, list_name));
}

/// The layer has not changed: the copy is as of a later moment.
pub fn renew(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    moment_unix_ms: u64,
) AreaList.ReadError!void {
    var list = try readList(gpa, files, dir);
    defer list.deinit(gpa);
    list.setMoment(moment_unix_ms);
    var name: Files.Name = undefined;
    try list.write(files, names.join(&name, dir, list_name));
}

pub const RestoreError = layer_file.ImportError || AreaList.ReadError || error{DamagedCopy};

/// Makes a layer of the copy in `dir`, in `layer_dir`, which holds none. It is complete on the disk
/// when this returns. `DamagedCopy`: `damaged_at` is set to a byte of the disk.
pub fn restore(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    layer_dir: []const u8,
    layer_id: base.Uuid,
    progress: layer_file.Progress,
    damaged_at: *u64,
) RestoreError!layer_file.Contents {
    var list = try readList(gpa, files, dir);
    defer list.deinit(gpa);
    var name: Files.Name = undefined;
    const areas = try files.open(names.join(&name, dir, areas_name), .read);
    defer files.close(areas);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    var head: layer_head.Head = list.head;
    head.layer_id = layer_id;
    head.sequence = 0;
    var made: layer_file.NewLayer = undefined;
    try made.create(gpa, files, layer_dir, head);
    defer made.close();
    const disk_size = head.binding.disk_size;
    var blocks: u64 = 0;
    for (list.entries()) |*entry| {
        const bytes = try entry.readFrom(files, areas, buffer) orelse &.{};
        if (!entry.isContent(bytes)) {
            damaged_at.* = entry.offset();
            return error.DamagedCopy;
        }
        var rest: []const u8 = bytes;
        var at: u32 = 0;
        while (entry.run(at, true)) |found| {
            const size = found.count * block_size;
            const block = @as(u64, entry.index()) * AreaList.area_blocks + found.block;
            if (entry.isZeros())
                try made.putZeros(block, found.count)
            else
                try made.put(.{ .block = block, .bytes = rest[0..size] });
            rest = rest[size..];
            at = found.block + found.count;
        }
        blocks += entry.blockCount();
        const done = @min(entry.offset() + AreaList.area_size, disk_size);
        if (!progress.call(progress.context, done, disk_size)) return error.Canceled;
    }
    try made.finish();
    return .{ .head = head, .blocks = blocks };
}

pub fn remove(files: Files, dir: []const u8) Files.Error!void {
    return names.removeDir(files, dir, &.{
        // A copy without its list is none.
        list_name,
        whole_list_name,
        next_list_name,
        list_name ++ ".new",
        next_list_name ++ ".new",
        areas_name,
        next_areas_name,
    });
}

test {
    _ = @import("held_copy_test.zig");
}
