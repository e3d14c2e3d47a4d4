//! Hands the layers that end with their process to the program that takes its place in that very
//! process (docs/decisions/0048-hand-over-of-write-caches.md). Their files have no names: the next
//! program finds them by the handles that stay open, and everything else in a file that has no name
//! either. So nothing is left for a process that starts in any other way, and a power failure or
//! the end of the process ends these layers as always. Nothing is synced.
//!
//!     offset  size  field
//!          0     8  "BFHANDOV"
//!          8     4  format, 1
//!         12     4  number of layers
//!         16     8  XxHash64 of the 16 bytes before; written last
//!
//!     layer       512  its head (head.zig)
//!                  32  what its owner wants to know of it
//!                   4  handle of its data file
//!                   4  handle of its checksums
//!                   2  generation of the checksums
//!                   2  generations up to this one are uncertain
//!                   1  1: an entry of the checksums could not be written
//!                   3  zeros
//!                   4  number of records
//!                   8  XxHash64 of everything before, from the head on
//!     each record   4  its place in the map, in rising order
//!                 512  bits of blocks that are owned, with a checksum (map.zig)
//!
//! Numbers are little-endian. Records that own nothing are left out.

const std = @import("std");
const base = @import("base");
const BlockSource = @import("../block_source.zig");
const Files = @import("../files/files.zig");
const layer_head = @import("head.zig");
const simulated = @import("../simulated.zig");
const LayerMap = @import("map.zig");
const LayerSums = @import("sums.zig");
const WriteLayer = @import("write_layer.zig");
const assert = std.debug.assert;
const Handle = Files.Handle;

pub const Handover = @This();

/// A program takes over from another one only in a format that it knows.
pub const format = 1;
pub const owner_size = 32;
pub const Owner = [owner_size]u8;

const magic = "BFHANDOV".*;
/// Records that are written or read together.
const chunk_records = 64;

const Header = extern struct {
    magic: [8]u8,
    format: [4]u8,
    count: [4]u8,
    checksum: [8]u8,

    fn checksumOf(header: *const Header) u64 {
        return std.hash.XxHash64.hash(0, std.mem.asBytes(header)[0..@offsetOf(Header, "checksum")]);
    }
};

const Entry = extern struct {
    head: [layer_head.size]u8,
    owner: Owner,
    data: [4]u8,
    sums: [4]u8,
    generation: [2]u8,
    uncertain: [2]u8,
    has_failed: u8,
    reserved: [3]u8 = @splat(0),
    record_count: [4]u8,
    checksum: [8]u8,

    /// `at`: the entry's place in the file.
    fn checksumOf(entry: *const Entry, at: u64) u64 {
        const bytes = std.mem.asBytes(entry)[0..@offsetOf(Entry, "checksum")];
        return std.hash.XxHash64.hash(at, bytes);
    }
};

const Record = extern struct { index: [4]u8, bytes: [LayerMap.record_size]u8 };

comptime {
    assert(@sizeOf(Header) == 24);
    assert(@alignOf(Entry) == 1);
    assert(@sizeOf(Record) == 4 + LayerMap.record_size);
}

files: Files,
handle: Handle,
/// Where the next layer is written.
at: u64 = @sizeOf(Header),
count: u32 = 0,

/// Begins a file; it has the name `name` for a moment.
pub fn begin(files: Files, name: []const u8) Files.Error!Handover {
    // A power failure may have left it.
    files.remove(name) catch |err| if (err != error.NotFound) return err;
    const handle = try files.create(name);
    errdefer files.close(handle);
    try files.remove(name);
    return .{ .files = files, .handle = handle };
}

/// Adds a layer, which nobody writes from now on.
pub fn add(handover: *Handover, layer: *const WriteLayer, owner: *const Owner) Files.Error!void {
    assert(!layer.head.binding.class.isDurable());
    assert(!layer.is_lost);
    const sums = &layer.sums.?;
    var entry: Entry = .{
        .head = layer_head.emit(&layer.head),
        .owner = owner.*,
        .data = undefined,
        .sums = undefined,
        .generation = undefined,
        .uncertain = undefined,
        .has_failed = @intFromBool(sums.has_failed),
        .record_count = undefined,
        .checksum = undefined,
    };
    std.mem.writeInt(i32, &entry.data, @backingInt(layer.data), .little);
    std.mem.writeInt(i32, &entry.sums, @backingInt(sums.handle), .little);
    std.mem.writeInt(u16, &entry.generation, sums.generation, .little);
    std.mem.writeInt(u16, &entry.uncertain, sums.uncertain, .little);
    const at = handover.at;
    handover.at += @sizeOf(Entry);
    const record_count = try handover.addRecords(&layer.map);
    std.mem.writeInt(u32, &entry.record_count, record_count, .little);
    std.mem.writeInt(u64, &entry.checksum, entry.checksumOf(at), .little);
    try handover.files.write(handover.handle, std.mem.asBytes(&entry), at);
    handover.count += 1;
}

fn addRecords(handover: *Handover, map: *const LayerMap) Files.Error!u32 {
    var chunk: [chunk_records]Record = undefined;
    var filled: usize = 0;
    var count: u32 = 0;
    var last: ?usize = null;
    while (map.nextRecord(last)) |index| : (last = index) {
        std.mem.writeInt(u32, &chunk[filled].index, @intCast(index), .little);
        map.writeRecord(index, &chunk[filled].bytes);
        filled += 1;
        count += 1;
        if (filled < chunk.len) continue;
        try handover.append(&chunk);
        filled = 0;
    }
    if (simulated.has(.handover_without_last) and filled > 0) {
        filled -= 1;
        count -= 1;
    }
    if (filled > 0) try handover.append(chunk[0..filled]);
    return count;
}

fn append(handover: *Handover, records: []const Record) Files.Error!void {
    const bytes = std.mem.sliceAsBytes(records);
    try handover.files.write(handover.handle, bytes, handover.at);
    handover.at += bytes.len;
}

/// Completes the file, and returns its handle.
pub fn end(handover: *Handover) Files.Error!Handle {
    var header: Header = .{
        .magic = magic,
        .format = undefined,
        .count = undefined,
        .checksum = undefined,
    };
    std.mem.writeInt(u32, &header.format, format, .little);
    std.mem.writeInt(u32, &header.count, handover.count, .little);
    std.mem.writeInt(u64, &header.checksum, header.checksumOf(), .little);
    try handover.files.write(handover.handle, std.mem.asBytes(&header), 0);
    return handover.handle;
}

/// After a failure: nothing is handed over.
pub fn cancel(handover: *Handover) void {
    handover.files.close(handover.handle);
    handover.* = undefined;
}

/// `Damaged`: it was not completed, or has changed since.
pub const TakeError = Files.Error || layer_head.Problem || error{OutOfMemory};

/// What a program takes from the one before it.
pub const Taking = struct {
    files: Files,
    handle: Handle,
    at: u64 = @sizeOf(Header),
    left: u32,

    /// Takes the handle, also where this fails: nobody takes anything a second time.
    pub fn begin(files: Files, handle: Handle) TakeError!Taking {
        errdefer files.close(handle);
        var header: Header = undefined;
        if (!try files.readWhole(handle, std.mem.asBytes(&header), 0)) return error.Damaged;
        if (!std.mem.eql(u8, &header.magic, &magic) or
            std.mem.readInt(u64, &header.checksum, .little) != header.checksumOf())
            return error.Damaged;
        if (std.mem.readInt(u32, &header.format, .little) != format) return error.NewerFormat;
        const count = std.mem.readInt(u32, &header.count, .little);
        return .{ .files = files, .handle = handle, .left = count };
    }

    pub const Taken = struct { layer: WriteLayer, owner: Owner };

    /// Returns the next layer, whose disk below is yet to be set; null: that was all. After an
    /// error nothing more is taken. Handles of layers that are not returned stay open.
    pub fn next(taking: *Taking, gpa: std.mem.Allocator) TakeError!?Taken {
        if (taking.left == 0) return null;
        errdefer taking.left = 0;
        var entry: Entry = undefined;
        const is_whole =
            try taking.files.readWhole(taking.handle, std.mem.asBytes(&entry), taking.at);
        if (!is_whole) return error.Damaged;
        if (std.mem.readInt(u64, &entry.checksum, .little) != entry.checksumOf(taking.at))
            return error.Damaged;
        taking.at += @sizeOf(Entry);
        const head = try layer_head.parse(&entry.head);
        if (head.binding.class.isDurable()) return error.Damaged;
        const count = std.mem.readInt(u32, &entry.record_count, .little);
        var map: LayerMap = try .init(gpa, head.binding.disk_size, head.layer_id);
        errdefer map.deinit(gpa);
        try taking.takeRecords(&map, count);
        const layer = try taking.layerOf(&head, &entry, map);
        taking.left -= 1;
        return .{ .layer = layer, .owner = entry.owner };
    }

    fn takeRecords(taking: *Taking, map: *LayerMap, count: u32) TakeError!void {
        var chunk: [chunk_records]Record = undefined;
        var left = count;
        var last: ?u32 = null;
        while (left > 0) {
            const records = chunk[0..@min(left, chunk.len)];
            const bytes = std.mem.sliceAsBytes(records);
            const is_whole = try taking.files.readWhole(taking.handle, bytes, taking.at);
            if (!is_whole) return error.Damaged;
            for (records) |*record| {
                const index = std.mem.readInt(u32, &record.index, .little);
                if (last) |before| if (index <= before) return error.Damaged;
                if (index >= map.dirty.capacity()) return error.Damaged;
                try map.readRecord(index, &record.bytes);
                last = index;
            }
            taking.at += bytes.len;
            left -= @intCast(records.len);
        }
    }

    /// The files must be those of this layer: the handles might be anybody's.
    fn layerOf(
        taking: *const Taking,
        head: *const layer_head.Head,
        entry: *const Entry,
        map: LayerMap,
    ) TakeError!WriteLayer {
        const files = taking.files;
        const data: Handle = @fromBackingInt(std.mem.readInt(i32, &entry.data, .little));
        const sums_handle: Handle = @fromBackingInt(std.mem.readInt(i32, &entry.sums, .little));
        if (!try WriteLayer.isDataOf(files, data, head)) return error.Damaged;
        const disk_size = head.binding.disk_size;
        var sums: LayerSums = try .load(files, sums_handle, head.layer_id, disk_size);
        sums.generation = std.mem.readInt(u16, &entry.generation, .little);
        sums.uncertain = std.mem.readInt(u16, &entry.uncertain, .little);
        sums.has_failed = entry.has_failed == 1;
        return .{
            .files = files,
            .below = .{
                .context = undefined,
                .vtable = &.{ .read = readUnknown },
                .size = disk_size,
            },
            .head = head.*,
            .map = map,
            .data = data,
            .map_file = null,
            .sums = sums,
        };
    }

    pub fn end(taking: *Taking) void {
        taking.files.close(taking.handle);
        taking.* = undefined;
    }
};

/// The disk below is not known yet.
fn readUnknown(_: *anyopaque, _: []u8, _: u64) BlockSource.ReadError!void {
    return error.ReadFailed;
}

test {
    _ = @import("handover_test.zig");
}
