//! The copy that an edge makes of one of its write layers, for another edge to fetch. It is not
//! what a lost layer comes back from: the layer itself lies on the same disk. So it is written in
//! place, only where areas have changed, and has no list meanwhile: without one nobody is given
//! anything of it.

const std = @import("std");
const AreaList = @import("area_list.zig");
const Files = @import("../files/files.zig");
const layer_head = @import("../layers/head.zig");
const LayerSnapshot = @import("../layers/snapshot.zig");
const names = @import("names.zig");
const assert = std.debug.assert;

const Entry = AreaList.Entry;
const area_blocks = AreaList.area_blocks;
const block_size = AreaList.block_size;

pub const OwnCopy = @This();

/// `TooLarge`: the layer has writes in more areas than a list may have.
pub const Error = Files.Error || error{ OutOfMemory, TooLarge };

pub const list_name = "list";
pub const areas_name = "areas";

gpa: std.mem.Allocator,
files: Files,
dir: []const u8,
/// Null: all areas are written.
former: ?AreaList,
/// The next entry of the former list.
former_at: usize = 0,
builder: AreaList.Builder,
areas: Files.Handle,
/// The area that gets blocks.
entry: Entry = undefined,
/// Its owned blocks.
filled: u32 = 0,
buffer: *[AreaList.area_size]u8,
/// Bytes that were written.
changed_bytes: u64 = 0,

/// Ends the former state of the copy in `dir`, which outlives this.
pub fn begin(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    head: *const layer_head.Head,
) Error!OwnCopy {
    try names.makeDirs(files, dir);
    var name: Files.Name = undefined;
    const list_path = names.join(&name, dir, list_name);
    var former: ?AreaList = AreaList.read(gpa, files, list_path) catch |err| switch (err) {
        error.NotFound, error.Damaged, error.NewerFormat => null,
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| return other,
    };
    errdefer if (former) |*list| list.deinit(gpa);
    files.remove(list_path) catch |err| if (err != error.NotFound) return err;
    try files.syncDir(dir);
    var areas_path: Files.Name = undefined;
    const path = names.join(&areas_path, dir, areas_name);
    if (former) |*list| if (!list.head.layer_id.eql(head.layer_id) or
        list.head.binding.disk_size != head.binding.disk_size)
    {
        list.deinit(gpa);
        former = null;
    };
    // Without a list nobody knows what is in the file.
    if (former == null) files.remove(path) catch |err| if (err != error.NotFound) return err;
    const areas = files.open(path, .write) catch |err| blk: {
        if (err != error.NotFound) return err;
        if (former) |*list| list.deinit(gpa);
        former = null;
        break :blk try files.create(path);
    };
    errdefer files.close(areas);
    var builder: AreaList.Builder = try .init(gpa, head);
    errdefer builder.deinit();
    const buffer = try gpa.create([AreaList.area_size]u8);
    return .{
        .gpa = gpa,
        .files = files,
        .dir = dir,
        .former = former,
        .builder = builder,
        .areas = areas,
        .buffer = buffer,
    };
}

pub fn deinit(copy: *OwnCopy) void {
    if (copy.former) |*list| list.deinit(copy.gpa);
    copy.files.close(copy.areas);
    copy.builder.deinit();
    copy.gpa.destroy(copy.buffer);
    copy.* = undefined;
}

/// Whole blocks of the layer, in the order of their places.
pub fn add(copy: *OwnCopy, piece: LayerSnapshot.Piece) Error!void {
    var rest = piece.bytes;
    var block = piece.block;
    while (rest.len > 0) {
        const area: u32 = @intCast(block / area_blocks);
        if (copy.filled > 0 and copy.entry.index() != area) try copy.finishArea();
        if (copy.filled == 0) {
            copy.entry = .{ .area = undefined, .owned = @splat(0), .digest = undefined };
            std.mem.writeInt(u32, &copy.entry.area, area, .little);
        }
        const within: u32 = @intCast(block % area_blocks);
        assert(!copy.entry.isOwned(within));
        copy.entry.owned[within / 8] |= @as(u8, 1) << @intCast(within % 8);
        @memcpy(copy.buffer[copy.filled * block_size ..][0..block_size], rest[0..block_size]);
        copy.filled += 1;
        block += 1;
        rest = rest[block_size..];
    }
}

/// All blocks were added. Returns the new list, which is on the disk.
pub fn finish(copy: *OwnCopy, moment_unix_ms: u64, source_change_ns: u64) Error!AreaList {
    if (copy.filled > 0) try copy.finishArea();
    try copy.dropFormer(null);
    const files = copy.files;
    var list = try copy.builder.finish(moment_unix_ms, source_change_ns);
    errdefer list.deinit(copy.gpa);
    try files.setSize(copy.areas, list.areasSize());
    try files.sync(copy.areas);
    try files.syncDir(copy.dir);
    var name: Files.Name = undefined;
    try list.write(files, names.join(&name, copy.dir, list_name));
    return list;
}

fn finishArea(copy: *OwnCopy) Error!void {
    const entry = &copy.entry;
    const bytes = copy.buffer[0 .. copy.filled * block_size];
    copy.filled = 0;
    entry.digest = AreaList.digestOf(&entry.owned, bytes);
    try copy.builder.add(entry);
    try copy.dropFormer(entry.index());
    const former = copy.takeFormer(entry.index());
    if (entry.isZeros()) {
        if (former) |before| if (!before.isZeros())
            try copy.punch(entry.offset(), AreaList.area_size);
        return;
    }
    if (former) |before| if (std.mem.eql(u8, &before.digest, &entry.digest)) return;
    try entry.writeTo(copy.files, copy.areas, bytes);
    copy.changed_bytes += bytes.len;
    // What the layer owns no more takes no space.
    const before = former orelse return;
    var at: u32 = 0;
    while (entry.run(at, false)) |found| {
        at = found.block + found.count;
        for (found.block..at) |block| {
            if (!before.isOwned(@intCast(block))) continue;
            try copy.punch(entry.offset() + block * block_size, block_size);
        }
    }
}

/// Frees the areas of the former list before `area` of which nothing was added; null: all.
fn dropFormer(copy: *OwnCopy, area: ?u32) Error!void {
    const all = if (copy.former) |*list| list.entries() else return;
    while (copy.former_at < all.len) : (copy.former_at += 1) {
        const entry = &all[copy.former_at];
        if (area) |until| if (entry.index() >= until) return;
        try copy.punch(entry.offset(), AreaList.area_size);
    }
}

fn takeFormer(copy: *OwnCopy, area: u32) ?*const Entry {
    const all = if (copy.former) |*list| list.entries() else return null;
    if (copy.former_at == all.len or all[copy.former_at].index() != area) return null;
    copy.former_at += 1;
    return &all[copy.former_at - 1];
}

fn punch(copy: *OwnCopy, offset: u64, size: u64) Error!void {
    const end = try copy.files.size(copy.areas);
    if (offset >= end) return;
    try copy.files.punch(copy.areas, offset, @min(size, end - offset));
}

/// Nothing has changed since the copy was made: it is as of now.
pub fn renew(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    moment_unix_ms: u64,
) AreaList.ReadError!void {
    var name: Files.Name = undefined;
    const path = names.join(&name, dir, list_name);
    var list: AreaList = try .read(gpa, files, path);
    defer list.deinit(gpa);
    list.setMoment(moment_unix_ms);
    try list.write(files, path);
}

pub fn remove(files: Files, dir: []const u8) Files.Error!void {
    return names.removeDir(files, dir, &.{ list_name, list_name ++ ".new", areas_name });
}
