//! The blocks of a write layer as they are at one moment, read piece by piece while the layer is
//! written on. Layers are written in place, so a block that changes before it was read is copied
//! first, to a file that has no name and ends with the process.
//!
//! Two threads meet here. The one that has the layer to itself calls `begin`, `end`, and `keep`
//! before each change; another one calls `read` and `take`. A block that was read counts only if
//! nothing has kept it by the time of `take`: otherwise its bytes may be those of a later write,
//! and it is read again, from the copy.
//!
//! A snapshot that cannot go on fails, and gives its copies up at once. No write of the layer ever
//! fails or waits because of it, except for the copying.

const std = @import("std");
const Files = @import("../files/files.zig");
const layer_head = @import("head.zig");
const LayerMap = @import("map.zig");
const LayerSums = @import("sums.zig");
const simulated = @import("../simulated.zig");
const WriteLayer = @import("write_layer.zig");
const assert = std.debug.assert;

const Handle = Files.Handle;
const block_size = LayerMap.block_size;

pub const LayerSnapshot = @This();

/// Blocks that are read together.
pub const piece_blocks = 256;
/// Blocks that are copied together.
const copy_blocks = 16;
/// Name of the copies in the store's directory, for a moment.
const copies_name = "snapshot-copies";

pub const OpenError = Files.Error || layer_head.Problem || error{ InUse, Lost, OutOfMemory };

/// `Rotten`: a block has changed on the disk, at `rotten_at`. `Lost`: a part of the layer is
/// missing. `Ended`: the layer was closed. `OverLimit`: the copies do not fit below the limit of
/// the layer. `NoSpace`: the disk has to keep what is free.
pub const Error = Files.Error || error{ Rotten, Lost, Ended, OverLimit };

gpa: std.mem.Allocator,
files: Files,
data: Handle,
head: layer_head.Head,
/// The blocks of that moment.
owned: LayerMap,
/// Null in a layer of a release without checksums.
sums: ?LayerSums,
buffer: []u8,
/// The next block to read.
at: u64 = 0,
/// What is in `buffer`.
reading: Reading = undefined,
/// The first byte of a block that has rotted, with `Rotten`.
rotten_at: u64 = 0,
/// Null where nobody writes to the layer meanwhile.
copies: ?Copies = null,

const Reading = struct { block: u64, count: u64, is_copied: bool, rotten: ?u64 };

const Copies = struct {
    io: std.Io,
    /// Guards `kept`, `taken` and `failure`. Nobody waits for a disk while it is locked.
    mutex: std.Io.Mutex = .init,
    /// Blocks that are in the file.
    kept: Bits,
    /// Blocks before this one are needed no more.
    taken: u64 = 0,
    failure: ?Error = null,
    file: Handle,
    /// Bytes that the file takes.
    size: u64 = 0,
    buffer: []u8,
    /// Bytes of the store's disk that stay free.
    free_bytes_min: u64,

    const Bits = std.bit_set.Dynamic;
};

/// Opens the layer in `dir`, which nobody writes, for as long as this is open. `InUse`: somebody
/// does.
pub fn openWhole(gpa: std.mem.Allocator, files: Files, dir: []const u8) OpenError!LayerSnapshot {
    var name: Files.Name = undefined;
    const data = files.open(join(&name, dir, "data"), .write) catch |err| return lostIfMissing(err);
    errdefer files.close(data);
    if (!try files.tryLock(data, true)) return error.InUse;
    var snapshot = try openParts(gpa, files, dir, data);
    errdefer snapshot.closeParts();
    const map_file = files.open(join(&name, dir, "map"), .read) catch |err|
        return lostIfMissing(err);
    defer files.close(map_file);
    try snapshot.owned.load(files, map_file);
    return snapshot;
}

/// Opens the layer in `dir`, which a thread of this process writes; `begin` follows. The copies
/// leave `free_bytes_min` of the disk free.
pub fn openWritten(
    gpa: std.mem.Allocator,
    io: std.Io,
    files: Files,
    dir: []const u8,
    free_bytes_min: u64,
) OpenError!LayerSnapshot {
    var name: Files.Name = undefined;
    const data = files.open(join(&name, dir, "data"), .read) catch |err| return lostIfMissing(err);
    errdefer files.close(data);
    var snapshot = try openParts(gpa, files, dir, data);
    errdefer snapshot.closeParts();
    // The directory may have been replaced in between.
    if (!try WriteLayer.isDataOf(files, data, &snapshot.head)) return error.Lost;
    if (try files.freeBytes() < free_bytes_min) return error.NoSpace;
    const size = try files.size(data);
    var kept: Copies.Bits = try .initEmpty(gpa, LayerMap.blockCount(size));
    errdefer kept.deinit(gpa);
    const buffer = try gpa.alloc(u8, copy_blocks * block_size);
    errdefer gpa.free(buffer);
    // A power cut between the next two calls leaves the name.
    files.remove(copies_name) catch |err| if (err != error.NotFound) return err;
    const file = try files.create(copies_name);
    errdefer files.close(file);
    try files.remove(copies_name);
    try files.setSize(file, size);
    snapshot.copies = .{
        .io = io,
        .kept = kept,
        .file = file,
        .buffer = buffer,
        .free_bytes_min = free_bytes_min,
    };
    return snapshot;
}

/// The head, the checksums, and memory for the map. `data` stays the caller's after a failure.
fn openParts(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    data: Handle,
) OpenError!LayerSnapshot {
    const head = try WriteLayer.readHead(files, dir);
    var owned: LayerMap = try .init(gpa, head.binding.disk_size, head.layer_id);
    errdefer owned.deinit(gpa);
    const buffer = try gpa.alloc(u8, piece_blocks * block_size);
    errdefer gpa.free(buffer);
    var name: Files.Name = undefined;
    const sums: ?LayerSums = if (head.has_sums) blk: {
        const handle = files.open(join(&name, dir, "sums"), .read) catch |err|
            return lostIfMissing(err);
        errdefer files.close(handle);
        break :blk try .load(files, handle, head.layer_id, head.binding.disk_size);
    } else null;
    return .{
        .gpa = gpa,
        .files = files,
        .data = data,
        .head = head,
        .owned = owned,
        .sums = sums,
        .buffer = buffer,
    };
}

/// After `end`, if there was a `begin`.
pub fn close(snapshot: *LayerSnapshot) void {
    if (snapshot.copies) |*copies| {
        snapshot.files.close(copies.file);
        copies.kept.deinit(snapshot.gpa);
        snapshot.gpa.free(copies.buffer);
    }
    snapshot.files.close(snapshot.data);
    snapshot.closeParts();
    snapshot.* = undefined;
}

fn closeParts(snapshot: *LayerSnapshot) void {
    if (snapshot.sums) |sums| snapshot.files.close(sums.handle);
    snapshot.owned.deinit(snapshot.gpa);
    snapshot.gpa.free(snapshot.buffer);
}

/// This is the moment: what was written so far is in the snapshot, and nothing later. It must not
/// move until `end`. `Ended`: another layer has taken the place of the one that was opened.
pub fn begin(snapshot: *LayerSnapshot, layer: *WriteLayer) error{ Lost, Ended }!void {
    assert(layer.keeper == null);
    assert(snapshot.copies != null);
    if (layer.is_lost) return error.Lost;
    if (!layer.head.layer_id.eql(snapshot.head.layer_id)) return error.Ended;
    snapshot.owned.takeOwned(&layer.map);
    // Entries change with their blocks, and a block that changes is kept first.
    if (snapshot.sums) |*sums| {
        const handle = sums.handle;
        sums.* = layer.sums.?;
        sums.handle = handle;
    }
    layer.keeper = .{ .context = snapshot, .keep = keep };
}

/// Nothing is kept from now on: what was not read yet cannot be read any more. Like `begin`, this
/// calls nothing that waits for a disk; `close` frees the copies.
pub fn end(snapshot: *LayerSnapshot, layer: *WriteLayer) void {
    assert(layer.keeper.?.context == @as(*anyopaque, snapshot));
    layer.keeper = null;
    _ = snapshot.note(error.Ended);
}

/// Copies the blocks of a range that will be needed. Called before they change, by the thread that
/// changes them.
fn keep(context: *anyopaque, layer: *const WriteLayer, block: u64, count: u64) void {
    const snapshot: *LayerSnapshot = @ptrCast(@alignCast(context));
    if (simulated.has(.snapshot_without_copy)) return;
    var at = block;
    while (snapshot.nextToKeep(at, block + count)) |run| {
        snapshot.copy(layer, run) catch |err| return snapshot.fail(err);
        at = run.block + run.count;
    }
}

const Run = struct { block: u64, count: u64 };

fn nextToKeep(snapshot: *LayerSnapshot, from: u64, until: u64) ?Run {
    const copies = &snapshot.copies.?;
    copies.mutex.lockUncancelable(copies.io);
    defer copies.mutex.unlock(copies.io);
    if (copies.failure != null) return null;
    var block = @max(from, copies.taken);
    while (block < until and !snapshot.isToKeep(block)) block += 1;
    if (block >= until) return null;
    var count: u64 = 1;
    while (count < copy_blocks and block + count < until and snapshot.isToKeep(block + count))
        count += 1;
    return .{ .block = block, .count = count };
}

fn isToKeep(snapshot: *const LayerSnapshot, block: u64) bool {
    return snapshot.owned.isOwned(block) and !snapshot.copies.?.kept.isSet(@intCast(block));
}

fn copy(snapshot: *LayerSnapshot, layer: *const WriteLayer, run: Run) Error!void {
    const copies, const files = .{ &snapshot.copies.?, snapshot.files };
    const offset = run.block * block_size;
    const bytes = copies.buffer[0..@intCast(run.count * block_size)];
    if (!try files.readWhole(snapshot.data, bytes, offset)) return error.Lost;
    if (snapshot.sums) |*sums| switch (try sums.judge(files, run.block, bytes, .waiting)) {
        .ok => {},
        .rotten => |block| {
            // It is read from nowhere else.
            snapshot.rotten_at = block * block_size;
            return error.Rotten;
        },
        .unknown => unreachable, // Only without waiting.
    };
    // Zeros stay a hole.
    if (!std.mem.allEqual(u8, bytes, 0)) {
        if (layer.is_short) return error.NoSpace;
        if (try files.freeBytes() < copies.free_bytes_min +| bytes.len) return error.NoSpace;
        const needed = layer.usedBytes() + copies.size + bytes.len;
        if (needed > layer.head.limit_bytes) return error.OverLimit;
        try files.write(copies.file, bytes, offset);
        copies.size += bytes.len;
    }
    copies.mutex.lockUncancelable(copies.io);
    defer copies.mutex.unlock(copies.io);
    copies.kept.setRangeValue(.{
        .start = @intCast(run.block),
        .end = @intCast(run.block + run.count),
    }, true);
}

/// The copies are given up: the layer may need the space.
fn fail(snapshot: *LayerSnapshot, err: Error) void {
    if (!snapshot.note(err)) return;
    snapshot.files.setSize(snapshot.copies.?.file, 0) catch {};
}

/// The first failure counts. Returns whether this is the first.
fn note(snapshot: *LayerSnapshot, err: Error) bool {
    const copies = &snapshot.copies.?;
    copies.mutex.lockUncancelable(copies.io);
    defer copies.mutex.unlock(copies.io);
    if (copies.failure != null) return false;
    copies.failure = err;
    return true;
}

/// Reads the next blocks; `take` says which of them count. Returns false if all were taken.
pub fn read(snapshot: *LayerSnapshot) Error!bool {
    const files = snapshot.files;
    if (snapshot.at == snapshot.owned.owned.capacity()) return false;
    const block = snapshot.owned.nextOwned(snapshot.at) orelse return false;
    const rest = snapshot.owned.owned.capacity() - block;
    var reading: Reading = .{
        .block = block,
        .count = snapshot.owned.runLength(block, @min(piece_blocks, rest)),
        .is_copied = false,
        .rotten = null,
    };
    if (snapshot.copies) |*copies| {
        // What is read goes somewhere, perhaps to the same disk.
        if (try files.freeBytes() < copies.free_bytes_min) {
            snapshot.fail(error.NoSpace);
            return error.NoSpace;
        }
        copies.mutex.lockUncancelable(copies.io);
        defer copies.mutex.unlock(copies.io);
        if (copies.failure) |failure| return failure;
        reading.is_copied = copies.kept.isSet(@intCast(block));
        reading.count = runOf(&copies.kept, block, reading.count);
    }
    const bytes = snapshot.buffer[0..@intCast(reading.count * block_size)];
    const from = if (reading.is_copied) snapshot.copies.?.file else snapshot.data;
    // The copies may have been given up.
    const is_whole = try files.readWhole(from, bytes, block * block_size);
    if (!is_whole and !reading.is_copied) return error.Lost;
    if (!reading.is_copied) if (snapshot.sums) |*sums|
        switch (try sums.judge(files, block, bytes, .waiting)) {
            .ok => {},
            .rotten => |rotten| reading.rotten = rotten,
            .unknown => unreachable, // Only without waiting.
        };
    snapshot.reading = reading;
    return true;
}

/// Counts the blocks from `block` on, at most `most`, that are all kept or all not.
fn runOf(kept: *const Copies.Bits, block: u64, most: u64) u64 {
    const is_kept = kept.isSet(@intCast(block));
    var count: u64 = 1;
    while (count < most and kept.isSet(@intCast(block + count)) == is_kept) count += 1;
    return count;
}

/// Whole blocks of the layer, zeros behind the end of the disk.
pub const Piece = struct { block: u64, bytes: []const u8 };

/// Returns the blocks that were read, valid until the next `read`. Null: they have changed
/// meanwhile, and are read again.
pub fn take(snapshot: *LayerSnapshot) Error!?Piece {
    const reading = &snapshot.reading;
    var count = reading.count;
    if (snapshot.copies) |*copies| {
        copies.mutex.lockUncancelable(copies.io);
        defer copies.mutex.unlock(copies.io);
        if (copies.failure) |failure| return failure;
        if (!reading.is_copied and !simulated.has(.snapshot_of_changed)) {
            if (copies.kept.isSet(@intCast(reading.block))) return null;
            count = runOf(&copies.kept, reading.block, count);
        }
        copies.taken = reading.block + count;
    }
    if (reading.rotten) |rotten| if (rotten < reading.block + count) {
        snapshot.rotten_at = rotten * block_size;
        return error.Rotten;
    };
    snapshot.at = reading.block + count;
    return .{
        .block = reading.block,
        .bytes = snapshot.buffer[0..@intCast(count * block_size)],
    };
}

fn lostIfMissing(err: Files.Error) OpenError {
    return if (err == error.NotFound) error.Lost else err;
}

fn join(into: *Files.Name, dir: []const u8, name: []const u8) []const u8 {
    // Layers have short names.
    return std.mem.print(into, "{s}/{s}", .{ dir, name }) catch unreachable;
}

test {
    _ = @import("snapshot_test.zig");
}
