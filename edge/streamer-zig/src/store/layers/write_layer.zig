//! A write layer: what one device has written above a disk that never changes. It consists of a
//! sparse file of the disk's size, written in place, and a map of the 4 KiB blocks that the layer
//! owns. An owned block is read from the file (a hole is zeros), any other block from below.
//!
//! Its directory holds `data`, `map`, `sums` and `head` (docs/guides/write-caches.md). One order
//! makes a crash harmless: a block's bytes are synced before its bit is written, so a bit on the
//! disk always stands for bytes on the disk. A lost, truncated or damaged layer returns errors
//! only: the block below never replaces one that was written. A block that has rotted (sums.zig) is
//! never delivered.
//!
//! A layer is used by one thread at a time, except for `runSync` and `warm`, which other threads
//! may run.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const layer_head = @import("head.zig");
const simulated = @import("../simulated.zig");
const LayerMap = @import("map.zig");
const LayerSums = @import("sums.zig");
const BlockSource = @import("../block_source.zig");
const assert = std.debug.assert;

const Handle = Files.Handle;
const Uuid = base.Uuid;

pub const WriteLayer = @This();

pub const block_size = LayerMap.block_size;
pub const sector_size = 512;
/// Longest write, in bytes.
pub const write_size_max = 1 << 20;
/// Longest discard, in bytes.
pub const discard_size_max = 64 << 20;
/// A keeper copies as many bytes as one write may have.
const kept_part_size_usual = write_size_max;
pub const Class = layer_head.Class;
pub const Binding = layer_head.Binding;
pub const Batch = LayerMap.Batch;

comptime {
    assert(discard_size_max / block_size < LayerMap.record_blocks * (LayerMap.batch_records - 2));
}

pub const OpenError = Files.Error || error{
    OutOfMemory,
    /// Head, map or data file differ from what was written.
    Damaged,
    /// A part of the layer is missing or truncated.
    Lost,
    NewerFormat,
    /// Another process is writing to it.
    InUse,
    AnotherVersion,
    AnotherDevice,
    AnotherSize,
    AnotherClass,
};

/// `Full`: the limit is reached. `NoSpace`: the disk is full. Nothing was written in both cases.
/// `Busy`: a sync must come first. `Lost`: the layer is unusable.
pub const WriteError = error{ BeyondTheEnd, Full, NoSpace, Busy, ReadFailed, Damaged, Lost };

/// A snapshot of the layer.
pub const Keeper = struct {
    context: *anyopaque,
    keep: *const fn (context: *anyopaque, *const WriteLayer, block: u64, count: u64) void,
};

files: Files,
below: BlockSource,
head: layer_head.Head,
map: LayerMap,
data: Handle,
/// Null in a layer that ends with its process.
map_file: ?Handle,
/// Null in a layer of a release without checksums that is only read.
sums: ?LayerSums,
/// The first byte of a block that has rotted, once one was read.
rotten_at: ?u64 = null,
/// Bytes were written and not synced.
is_unsynced: bool = false,
/// A failed layer returns only errors.
is_lost: bool = false,
/// The file system is almost full: blocks that take new space are refused with `NoSpace`.
is_short: bool = false,
/// Hears of blocks before they change; set while no thread writes.
keeper: ?Keeper = null,
/// In bytes, whole blocks: how much of a discard is carried out at once while there is a keeper.
kept_part_size: u64 = kept_part_size_usual,

/// Makes a new layer in the directory `dir`, which must not hold one; the parent directory exists.
/// `layer_id` is unguessable.
pub fn create(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    head: layer_head.Head,
    below: BlockSource,
) OpenError!WriteLayer {
    assert(head.binding.disk_size == below.size);
    var map: LayerMap = try .init(gpa, below.size, head.layer_id);
    errdefer map.deinit(gpa);
    var names: [3]Files.Name = undefined;
    const data_name, const map_name, const sums_name = .{
        join(&names[0], dir, "data"),
        join(&names[1], dir, "map"),
        join(&names[2], dir, "sums"),
    };
    files.makeDir(dir) catch |err| if (err != error.Exists) return err;
    if (!head.binding.class.isDurable()) {
        const parts = try createNameless(files, dir, &head, data_name, sums_name);
        return .{
            .files = files,
            .below = below,
            .head = head,
            .map = map,
            .data = parts.data,
            .map_file = null,
            .sums = parts.sums,
        };
    }
    try clearUnfinished(gpa, files, dir, below.size);
    files.makeDir(dir) catch |err| if (err != error.Exists) return err;
    const data = try files.create(data_name);
    errdefer files.close(data);
    if (!try files.tryLock(data, true)) return error.InUse;
    try files.setSize(data, dataSize(below.size));
    try files.write(data, &trailerOf(head.layer_id), dataSize(below.size) - trailer_size);
    try files.sync(data);
    const map_file = try files.create(map_name);
    errdefer files.close(map_file);
    try map.writeAll(files, map_file);
    try files.sync(map_file);
    const sums_file = try files.create(sums_name);
    errdefer files.close(sums_file);
    const sums: LayerSums = try .createSynced(files, sums_file, head.layer_id, below.size);
    // The head is written last: it promises that the other parts exist.
    try files.syncDir(dir);
    var layer: WriteLayer = .{
        .files = files,
        .below = below,
        .head = head,
        .map = map,
        .data = data,
        .map_file = map_file,
        .sums = sums,
    };
    layer.head.has_sums = true;
    try layer.writeHead(dir);
    try files.syncDir(parentOf(dir));
    return layer;
}

const NamelessParts = struct { data: Handle, sums: LayerSums };

/// Makes the files of a layer that ends with its process: they keep no names.
fn createNameless(
    files: Files,
    dir: []const u8,
    head: *const layer_head.Head,
    data_name: []const u8,
    sums_name: []const u8,
) Files.Error!NamelessParts {
    // A power cut between the next two calls leaves the name.
    try removeIfThere(files, data_name);
    const data = try files.create(data_name);
    errdefer files.close(data);
    try files.remove(data_name);
    try removeIfThere(files, sums_name);
    const sums_file = try files.create(sums_name);
    errdefer files.close(sums_file);
    try files.remove(sums_name);
    try files.remove(dir);
    const size = dataSize(head.binding.disk_size);
    try files.setSize(data, size);
    // A program that takes the place of this one looks for it (handover.zig).
    try files.write(data, &trailerOf(head.layer_id), size - trailer_size);
    const disk_size = head.binding.disk_size;
    return .{ .data = data, .sums = try .create(files, sums_file, head.layer_id, disk_size) };
}

/// Opens the layer in `dir` if it has this `binding`. `NotFound`: there is none.
pub fn open(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    binding: *const Binding,
    below: BlockSource,
) OpenError!WriteLayer {
    assert(binding.disk_size == below.size);
    const head = try readHead(files, dir);
    if (head.binding.class != binding.class) return error.AnotherClass;
    if (!head.binding.device_id.eql(binding.device_id)) return error.AnotherDevice;
    if (!head.binding.version_id.eql(binding.version_id) and
        !simulated.has(.another_version_served))
        return error.AnotherVersion;
    if (!std.mem.eql(
        u8,
        &head.binding.version_root,
        &binding.version_root,
    ) and !simulated.has(.another_version_served))
        return error.AnotherVersion;
    if (head.binding.disk_size != binding.disk_size) return error.AnotherSize;
    var name: Files.Name = undefined;
    const data = files.open(join(&name, dir, "data"), .write) catch |err| return lostIfMissing(err);
    errdefer files.close(data);
    if (!try files.tryLock(data, true)) return error.InUse;
    // Another layer may have been made between reading the head and locking.
    const again = try readHead(files, dir);
    if (!again.layer_id.eql(head.layer_id)) return error.InUse;
    if (!try isDataOf(files, data, &head)) return error.Lost;
    const map_file = files.open(join(&name, dir, "map"), .write) catch |err|
        return lostIfMissing(err);
    errdefer files.close(map_file);
    var map: LayerMap = try .init(gpa, binding.disk_size, head.layer_id);
    errdefer map.deinit(gpa);
    try map.load(files, map_file);
    if (!simulated.has(.layer_taken_unsynced)) {
        // A killed process may have left a bit that is visible but not on the disk: without a sync
        // here its record would never be written again.
        try files.sync(data);
        try files.sync(map_file);
        try files.syncDir(dir);
        try files.syncDir(parentOf(dir));
    }
    const sums = try openSums(files, dir, &head);
    errdefer files.close(sums.handle);
    var layer: WriteLayer = .{
        .files = files,
        .below = below,
        .head = head,
        .map = map,
        .data = data,
        .map_file = map_file,
        .sums = sums,
    };
    if (head.has_sums) return layer;
    layer.head.has_sums = true;
    try layer.writeHead(dir);
    return layer;
}

/// Returns whether this is the whole data file of a layer.
pub fn isDataOf(files: Files, data: Handle, head: *const layer_head.Head) Files.Error!bool {
    const size = dataSize(head.binding.disk_size);
    if (try files.size(data) != size) return false;
    var trailer: [trailer_size]u8 = undefined;
    if (!try files.readWhole(data, &trailer, size - trailer_size)) return false;
    return std.mem.eql(u8, &trailer, &trailerOf(head.layer_id));
}

/// A layer of a release without checksums gets the file now, and entries as its blocks are written.
fn openSums(files: Files, dir: []const u8, head: *const layer_head.Head) OpenError!LayerSums {
    var buffer: Files.Name = undefined;
    const name = join(&buffer, dir, "sums");
    const disk_size = head.binding.disk_size;
    if (head.has_sums) {
        const handle = files.open(name, .write) catch |err| return lostIfMissing(err);
        errdefer files.close(handle);
        return .open(files, handle, head.layer_id, disk_size);
    }
    // Of an upgrade that a crash interrupted.
    try removeIfThere(files, name);
    const handle = try files.create(name);
    errdefer files.close(handle);
    const sums: LayerSums = try .createSynced(files, handle, head.layer_id, disk_size);
    try files.syncDir(dir);
    return sums;
}

/// Bytes that were written and not synced may be lost.
pub fn close(layer: *WriteLayer, gpa: std.mem.Allocator) void {
    if (layer.sums) |*sums| layer.files.close(sums.handle);
    layer.files.close(layer.data);
    if (layer.map_file) |handle| layer.files.close(handle);
    layer.map.deinit(gpa);
    layer.* = undefined;
}

/// Call it before `close` where the process does not end abruptly: the next opening then knows each
/// block that has rotted since. Waits for the disk; nothing may be written afterwards.
pub fn settle(layer: *WriteLayer, batch: *Batch) void {
    if (layer.map_file == null) return;
    // A layer that ended by a block that has rotted is whole otherwise.
    if (layer.is_lost and layer.rotten_at == null) return;
    if (layer.beginSync(batch)) layer.runSync(batch) catch return;
    layer.sums.?.closeInOrder(layer.files) catch {};
}

/// Reads the head of the layer in `dir`, even if the layer is in use. `NotFound`: there is none.
pub fn readHead(files: Files, dir: []const u8) (Files.Error || layer_head.Problem)!layer_head.Head {
    var name: Files.Name = undefined;
    const handle = try files.open(join(&name, dir, "head"), .read);
    defer files.close(handle);
    var bytes: [layer_head.size]u8 = undefined;
    if (try files.size(handle) != bytes.len) return error.Damaged;
    if (!try files.readWhole(handle, &bytes, 0)) return error.Damaged;
    return layer_head.parse(&bytes);
}

/// Removes the layer in `dir`, in any state, and the remains of an earlier removal. `InUse`: a
/// process writes to it.
pub fn remove(files: Files, dir: []const u8) (Files.Error || error{InUse})!void {
    var names: [2]Files.Name = undefined;
    if (files.open(join(&names[0], dir, "data"), .write)) |data| {
        defer files.close(data);
        if (!try files.tryLock(data, true)) return error.InUse;
    } else |err| if (err != error.NotFound) return err;
    // From here on the remains are not mistaken for a layer that lost its head.
    const head, const removed = .{ join(&names[0], dir, "head"), join(&names[1], dir, "removed") };
    files.rename(head, removed) catch |err| if (err != error.NotFound) return err;
    // Also where an earlier removal has renamed it.
    files.syncDir(dir) catch |err| if (err != error.NotFound) return err;
    for ([_][]const u8{ "data", "map", "sums", "head.new" }) |part|
        try removeIfThere(files, join(&names[0], dir, part));
    files.syncDir(dir) catch |err| return if (err == error.NotFound) {} else err;
    try removeIfThere(files, removed);
    try removeIfThere(files, dir);
    try files.syncDir(parentOf(dir));
}

/// Returns a source of the whole disk, valid while the layer does not move in memory.
pub fn source(layer: *WriteLayer) BlockSource {
    return .{
        .context = layer,
        .vtable = &.{ .read = readFromContext, .readNow = readNowFromContext },
        .size = layer.below.size,
    };
}

/// Fills `buffer` from byte `offset`, completely or not at all; neither needs alignment.
pub fn read(layer: *WriteLayer, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    if (layer.is_lost) return error.Lost;
    if (buffer.len > layer.below.size or
        offset > layer.below.size - buffer.len) return error.BeyondTheEnd;
    var walk = layer.runs(offset, buffer.len);
    while (walk.next()) |run| {
        const part = buffer[@intCast(run.offset - offset)..][0..@intCast(run.size)];
        if (run.is_own)
            try layer.readOwn(part, run.offset)
        else
            try layer.below.read(part, run.offset);
    }
}

/// Like `read`, but only from memory, and only checked blocks of the version below; returns false
/// if a `read` is needed.
pub fn readNow(layer: *WriteLayer, buffer: []u8, offset: u64) BlockSource.ReadError!bool {
    if (layer.is_lost) return error.Lost;
    if (buffer.len > layer.below.size or
        offset > layer.below.size - buffer.len) return error.BeyondTheEnd;
    var walk = layer.runs(offset, buffer.len);
    while (walk.next()) |run| {
        const part = buffer[@intCast(run.offset - offset)..][0..@intCast(run.size)];
        const is_read = if (run.is_own)
            try layer.readOwnNow(part, run.offset)
        else
            try layer.below.readNow(part, run.offset);
        if (!is_read) return false;
    }
    return true;
}

/// Bytes of the disk that are in the layer, or below it.
pub const Run = struct { offset: u64, size: u64, is_own: bool };

pub const Runs = struct {
    map: *const LayerMap,
    at: u64,
    end: u64,

    pub fn next(walk: *Runs) ?Run {
        if (walk.at == walk.end) return null;
        const block = walk.at / block_size;
        const blocks = (walk.end - 1) / block_size - block + 1;
        const run_end = @min(walk.end, (block + walk.map.runLength(block, blocks)) * block_size);
        defer walk.at = run_end;
        return .{ .offset = walk.at, .size = run_end - walk.at, .is_own = walk.map.isOwned(block) };
    }
};

/// Returns where the bytes of a range are, in order; valid until the next write.
pub fn runs(layer: *const WriteLayer, offset: u64, size: u64) Runs {
    return .{ .map = &layer.map, .at = offset, .end = offset + size };
}

/// Writes `bytes` at `offset`, both multiples of 512. Reads return them from now on; they are
/// durable when a sync that begins later has ended.
pub fn write(layer: *WriteLayer, bytes: []const u8, offset: u64) WriteError!void {
    assert(bytes.len <= write_size_max);
    try layer.check(bytes.len, offset);
    if (bytes.len >= block_size and offset % block_size == 0 and bytes.len % block_size == 0) {
        if (std.mem.allEqual(u8, bytes, 0)) return layer.punch(offset, bytes.len);
    }
    try layer.checkRoom(bytes.len, offset);
    var at = offset;
    var rest = bytes;
    while (rest.len > 0) {
        const within: usize = @intCast(at % block_size);
        if (within == 0 and rest.len >= block_size) {
            const whole = rest.len - rest.len % block_size;
            try layer.putWhole(rest[0..whole], at);
            at += whole;
            rest = rest[whole..];
            continue;
        }
        const part = @min(rest.len, block_size - within);
        try layer.putPart(rest[0..part], at / block_size, within);
        at += part;
        rest = rest[part..];
    }
    layer.own(offset, bytes.len);
}

/// Makes the range read as zeros; whole blocks free their space.
pub fn discard(layer: *WriteLayer, offset: u64, size: u64) WriteError!void {
    assert(size <= discard_size_max);
    try layer.check(size, offset);
    const zeros: [block_size]u8 = @splat(0);
    const end = offset + size;
    const first_whole = @min(end, std.mem.alignForward(u64, offset, block_size));
    // The last block of a disk may be short.
    const whole_end = if (end == layer.below.size) end else @max(
        first_whole,
        std.mem.alignBackward(u64, end, block_size),
    );
    if (offset < first_whole) try layer.write(zeros[0..@intCast(first_whole - offset)], offset);
    if (first_whole < whole_end) try layer.punch(first_whole, whole_end - first_whole);
    if (whole_end < end) try layer.write(zeros[0..@intCast(end - whole_end)], whole_end);
}

/// Like `discard`, of the first part of the range alone where a keeper has to hear of its blocks.
/// Returns the size of that part: the caller lets others read the layer before it discards the
/// rest, and carries out nothing else for the device meanwhile.
pub fn discardPart(layer: *WriteLayer, offset: u64, size: u64) WriteError!u64 {
    const most = layer.kept_part_size - offset % layer.kept_part_size;
    const part = if (layer.keeper == null) size else @min(size, most);
    assert(part == size or (offset + part) % block_size == 0);
    try layer.discard(offset, part);
    return if (simulated.has(.discard_ends_early)) size else part;
}

/// Bytes that the layer's blocks take on the disk.
pub fn usedBytes(layer: *const WriteLayer) u64 {
    const allocated = layer.files.allocated(layer.data) catch return 0;
    return allocated -| trailer_size;
}

/// Copies into `batch` what must reach the disk; returns false if everything is there. The batch
/// then goes to `runSync` and `endSync`, one batch at a time.
pub fn beginSync(layer: *WriteLayer, batch: *Batch) bool {
    if (layer.map_file == null or !layer.is_unsynced) return false;
    layer.is_unsynced = false;
    layer.map.takeDirty(batch);
    return true;
}

/// Runs on any thread, beside everything but another sync: bytes first, then the bits that stand
/// for them.
pub fn runSync(layer: *const WriteLayer, batch: *const Batch) Files.Error!void {
    if (!simulated.has(.map_before_bytes)) try layer.files.sync(layer.data);
    defer if (simulated.has(.map_before_bytes)) layer.files.sync(layer.data) catch {};
    if (batch.count == 0) return;
    const handle = layer.map_file.?;
    for (batch.indices[0..batch.count], batch.records[0..batch.count]) |index, *record|
        try layer.files.write(handle, record, @as(u64, index) * LayerMap.record_size);
    try layer.files.sync(handle);
}

/// A failed sync leaves the state of the disk unknown: the layer is lost.
pub fn endSync(layer: *WriteLayer, result: Files.Error!void) error{Lost}!void {
    result catch {
        layer.is_lost = true;
    };
    if (layer.is_lost) return error.Lost;
}

/// Makes all writes durable, unless the layer ends with its process.
pub fn flush(layer: *WriteLayer, batch: *Batch) error{Lost}!void {
    if (layer.is_lost) return error.Lost;
    if (!layer.beginSync(batch)) return;
    try layer.endSync(layer.runSync(batch));
}

fn check(layer: *const WriteLayer, size: u64, offset: u64) WriteError!void {
    assert(size % sector_size == 0);
    assert(offset % sector_size == 0);
    if (layer.is_lost) return error.Lost;
    if (size == 0 or size > layer.below.size or
        offset > layer.below.size - size) return error.BeyondTheEnd;
    if (layer.map_file == null) return;
    const first = offset / block_size;
    if (!layer.map.hasRoom(first, (offset + size - 1) / block_size - first + 1)) return error.Busy;
}

/// Returns whether blocks that take new space fit below the limit.
fn checkRoom(layer: *WriteLayer, size: u64, offset: u64) WriteError!void {
    const used = layer.usedBytes();
    const first, const last = .{ offset / block_size, (offset + size - 1) / block_size };
    if (!layer.is_short and
        used + (last - first + 1) * block_size <= layer.head.limit_bytes) return;
    var wanted: u64 = 0;
    for (first..last + 1) |block| {
        const at = block * block_size;
        const is_stored = layer.map.isOwned(block) and
            (layer.files.nextData(layer.data, at) catch null) == at;
        wanted += if (is_stored) 0 else block_size;
    }
    if (wanted > 0 and used + wanted > layer.head.limit_bytes) return error.Full;
    if (wanted > 0 and layer.is_short) return error.NoSpace;
}

/// Reads and checks whole blocks; those of a range that begins or ends within one by a buffer.
fn readOwn(layer: *WriteLayer, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    var pieces: Pieces = .{ .buffer = buffer, .offset = offset };
    var block: [block_size]u8 = undefined;
    while (pieces.next()) |piece| {
        const into = if (piece.is_whole) piece.bytes else &block;
        const at = piece.at - piece.within;
        const is_read = layer.files.readWhole(layer.data, into, at) catch return error.ReadFailed;
        if (!is_read) {
            layer.is_lost = true;
            return error.Lost;
        }
        if (layer.sums) |*sums| try layer.take(sums.judge(
            layer.files,
            at / block_size,
            into,
            .waiting,
        ) catch return error.ReadFailed);
        if (!piece.is_whole) @memcpy(piece.bytes, block[piece.within..][0..piece.bytes.len]);
    }
}

fn readOwnNow(layer: *WriteLayer, buffer: []u8, offset: u64) BlockSource.ReadError!bool {
    var pieces: Pieces = .{ .buffer = buffer, .offset = offset };
    var block: [block_size]u8 = undefined;
    while (pieces.next()) |piece| {
        const into = if (piece.is_whole) piece.bytes else &block;
        const at = piece.at - piece.within;
        const count = layer.files.readNow(layer.data, into, at) catch return error.ReadFailed;
        if (count < into.len) return false;
        const verdict = layer.sums.?.judge(layer.files, at / block_size, into, .now) catch
            return error.ReadFailed;
        if (verdict == .unknown) return false;
        try layer.take(verdict);
        if (!piece.is_whole) @memcpy(piece.bytes, block[piece.within..][0..piece.bytes.len]);
    }
    return true;
}

/// A block that has rotted ends the layer: its device must not go on with a part of its disk.
fn take(layer: *WriteLayer, verdict: LayerSums.Verdict) error{Lost}!void {
    const block = switch (verdict) {
        .ok => return,
        .rotten => |block| block,
        .unknown => unreachable, // Only without waiting.
    };
    layer.sums.?.condemn(layer.files, block);
    layer.rotten_at = block * block_size;
    layer.is_lost = true;
    return error.Lost;
}

/// Brings what the layer has of a range into memory, without judging it.
pub fn warm(layer: *const WriteLayer, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    const is_whole = layer.files.readWhole(layer.data, buffer, offset) catch
        return error.ReadFailed;
    if (!is_whole) return error.Lost;
    const first = offset / block_size;
    layer.sums.?.warm(layer.files, first, (offset + buffer.len - 1) / block_size - first + 1) catch
        return error.ReadFailed;
}

/// A range cut into whole blocks and parts of blocks.
const Pieces = struct {
    buffer: []u8,
    offset: u64,

    const Piece = struct { bytes: []u8, at: u64, within: usize, is_whole: bool };

    fn next(pieces: *Pieces) ?Piece {
        if (pieces.buffer.len == 0) return null;
        const within: usize = @intCast(pieces.offset % block_size);
        const is_whole = within == 0 and pieces.buffer.len >= block_size;
        const size = if (is_whole)
            pieces.buffer.len - pieces.buffer.len % block_size
        else
            @min(pieces.buffer.len, block_size - within);
        defer {
            pieces.buffer = pieces.buffer[size..];
            pieces.offset += size;
        }
        return .{
            .bytes = pieces.buffer[0..size],
            .at = pieces.offset,
            .within = within,
            .is_whole = is_whole,
        };
    }
};

/// Writes part of a block, together with the rest of it from the layer or from below.
fn putPart(layer: *WriteLayer, bytes: []const u8, block: u64, within: usize) WriteError!void {
    const at = block * block_size;
    var whole: [block_size]u8 = @splat(0);
    const size: usize = @intCast(@min(block_size, layer.below.size - at));
    const is_owned = layer.map.isOwned(block);
    const rest = if (bytes.len == size) {
        // All of a short last one.
    } else if (is_owned)
        layer.readOwn(whole[0..size], at)
    else if (!simulated.has(.part_without_base))
        layer.below.read(whole[0..size], at);
    rest catch |err| return switch (err) {
        error.BeyondTheEnd => unreachable, // Within the disk.
        error.ReadFailed => error.ReadFailed,
        error.Damaged => error.Damaged,
        error.Lost => error.Lost,
    };
    @memcpy(whole[within..][0..bytes.len], bytes);
    try layer.putWhole(&whole, at);
}

fn put(layer: *WriteLayer, bytes: []const u8, offset: u64) WriteError!void {
    layer.is_unsynced = true;
    layer.files.write(layer.data, bytes, offset) catch |err| return layer.failed(err);
}

/// Writes whole blocks, and the zeros behind a disk that ends within one, with their checksums.
fn putWhole(layer: *WriteLayer, bytes: []const u8, offset: u64) WriteError!void {
    assert(bytes.len % block_size == 0 and offset % block_size == 0);
    layer.keep(offset, bytes.len);
    try layer.put(bytes, offset);
    layer.sums.?.note(layer.files, offset / block_size, bytes);
}

fn punch(layer: *WriteLayer, offset: u64, size: u64) WriteError!void {
    layer.is_unsynced = true;
    // Also frees the padding of a disk's short last block in the file.
    const whole = std.mem.alignForward(u64, size, block_size);
    layer.keep(offset, whole);
    layer.files.punch(layer.data, offset, whole) catch |err| return layer.failed(err);
    layer.sums.?.forget(layer.files, offset / block_size, whole / block_size);
    if (!simulated.has(.discard_not_owned)) layer.own(offset, size);
}

fn keep(layer: *const WriteLayer, offset: u64, size: u64) void {
    const keeper = layer.keeper orelse return;
    keeper.keep(keeper.context, layer, offset / block_size, size / block_size);
}

fn own(layer: *WriteLayer, offset: u64, size: u64) void {
    const first = offset / block_size;
    const count = (offset + size - 1) / block_size - first + 1;
    if (layer.map_file ==
        null) layer.map.ownInMemory(first, count) else layer.map.own(first, count);
}

fn failed(layer: *WriteLayer, err: Files.Error) WriteError {
    if (err == error.NoSpace) return error.NoSpace;
    layer.is_lost = true;
    return error.Lost;
}

fn writeHead(layer: *WriteLayer, dir: []const u8) Files.Error!void {
    var names: [2]Files.Name = undefined;
    const new, const head = .{ join(&names[0], dir, "head.new"), join(&names[1], dir, "head") };
    try removeIfThere(layer.files, new);
    const handle = try layer.files.create(new);
    defer layer.files.close(handle);
    layer.head.sequence += 1;
    try layer.files.write(handle, &layer_head.emit(&layer.head), 0);
    try layer.files.sync(handle);
    try layer.files.rename(new, head);
    try layer.files.syncDir(dir);
}

/// Removes what an interrupted creation or removal left. A written layer without a head stays: it
/// is lost.
fn clearUnfinished(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    disk_size: u64,
) OpenError!void {
    var name: Files.Name = undefined;
    if (files.open(join(&name, dir, "head"), .read)) |handle| {
        files.close(handle);
        return error.Exists;
    } else |err| if (err != error.NotFound) return err;
    const is_removed = if (files.open(join(&name, dir, "removed"), .read)) |handle| blk: {
        files.close(handle);
        break :blk true;
    } else |err| if (err == error.NotFound) false else return err;
    if (!is_removed and try ownsBlocks(gpa, files, dir, disk_size)) return error.Lost;
    try remove(files, dir);
}

fn ownsBlocks(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    disk_size: u64,
) OpenError!bool {
    var name: Files.Name = undefined;
    const data = files.open(join(&name, dir, "data"), .read) catch |err|
        return if (err == error.NotFound) false else err;
    defer files.close(data);
    const size = try files.size(data);
    var trailer: [trailer_size]u8 = undefined;
    if (size < trailer_size or !try files.readWhole(data, &trailer, size - trailer_size))
        return false;
    const layer_id: Uuid = .fromBytes(trailer[trailer_magic.len..][0..16].*);
    const handle = files.open(join(&name, dir, "map"), .read) catch |err|
        return if (err == error.NotFound) false else err;
    defer files.close(handle);
    var map: LayerMap = try .init(gpa, @max(disk_size, size), layer_id);
    defer map.deinit(gpa);
    return map.ownsAnything(files, handle);
}

fn removeIfThere(files: Files, name: []const u8) Files.Error!void {
    files.remove(name) catch |err| if (err != error.NotFound) return err;
}

fn lostIfMissing(err: Files.Error) OpenError {
    return if (err == error.NotFound) error.Lost else err;
}

/// The trailer behind the blocks of the data file: names the owner, and shows that the file was not
/// truncated.
const trailer_size = block_size;
const trailer_magic = "BFLAYER data of ";

fn trailerOf(layer_id: Uuid) [trailer_size]u8 {
    var bytes: [trailer_size]u8 = @splat(0);
    bytes[0..trailer_magic.len].* = trailer_magic.*;
    bytes[trailer_magic.len..][0..16].* = layer_id.bytes;
    return bytes;
}

fn dataSize(disk_size: u64) u64 {
    return std.mem.alignForward(u64, disk_size, block_size) + trailer_size;
}

fn join(into: *Files.Name, dir: []const u8, name: []const u8) []const u8 {
    // Layers have short names.
    return std.mem.print(into, "{s}/{s}", .{ dir, name }) catch unreachable;
}

fn parentOf(dir: []const u8) []const u8 {
    const at = std.mem.findScalarLast(u8, dir, '/') orelse return "";
    return dir[0..at];
}

fn readFromContext(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    const layer: *WriteLayer = @ptrCast(@alignCast(context));
    return layer.read(buffer, offset);
}

fn readNowFromContext(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!bool {
    const layer: *WriteLayer = @ptrCast(@alignCast(context));
    return layer.readNow(buffer, offset);
}
