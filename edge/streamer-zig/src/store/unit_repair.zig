//! Repairs a damaged unit (unit.zig) in its place: what another edge sends of its blocks is written
//! as one unit again (docs/decisions/0081-repair-of-packed-units.md). Blocks that did not come, of
//! this version or of another one that has them, are marked as absent: reading them fails as it did
//! before, until they are repaired too. A repair that is interrupted leaves a unit that is damaged,
//! as before, or repaired. Bytes with another hash are never written.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const Files = @import("files/files.zig");
const lz4 = @import("codec").lz4;
const simulated = @import("simulated.zig");
const unit = @import("unit.zig");
const VersionReader = @import("version_reader.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Location = block.Location;

/// The disk was not to blame.
pub const ReadError = error{ReadFailed};

/// As of `repair.writeBlock`; `Misfit`: the blocks take more than the place of the unit has, until
/// others come too.
pub const WriteError = Files.Error || error{ Locked, Misfit };

pub const UnitRepair = @This();

/// Of the first block of the unit.
location: Location = .none,
/// Those that the unit lacks; all of them if it is damaged.
absent: unit.BlockSet = 0,
raw: [unit.raw_size_max]u8 = undefined,
/// What the disk has before the unit is written.
there: [unit.raw_size_max]u8 = undefined,
stored: unit.Stored = undefined,
pages: [unit.stored_size_max + 2 * block.block_size]u8 = undefined,
table: lz4.Table = undefined,
search: lz4.Search = undefined,

/// Reads the unit of a block from the disk.
pub fn read(repairing: *UnitRepair, data: *FileSet, location: Location) ReadError!void {
    repairing.location = location.unit();
    const place = location.place();
    repairing.absent = unit.allOf(@as(usize, place.last) + 1);
    if (!unit.isPossible(location)) return;
    const stored = repairing.stored[0..location.storedSize()];
    const is_whole = data.read(location, 0, stored) catch |err| switch (err) {
        error.NotFound, error.DiskFailed => return,
        error.Exists,
        error.NoSpace,
        error.ReadOnly,
        error.Denied,
        error.TooManyFiles,
        => return error.ReadFailed,
    };
    if (!is_whole) return;
    repairing.absent = unit.unpack(repairing.rawOf(), stored) catch return;
}

/// Returns whether the unit has this block of it, with the right bytes.
pub fn isSound(repairing: *UnitRepair, entry: *const Entry) bool {
    assert(repairing.location.eql(entry.location.unit()));
    if (unit.isIn(repairing.absent, entry.location.place().index)) return false;
    return std.mem.eql(u8, &block.hashOf(repairing.blockOf(entry.location)), &entry.hash);
}

/// Takes the bytes of a block.
pub fn put(
    repairing: *UnitRepair,
    entry: *const Entry,
    bytes: *const block.Block,
) error{Wrong}!void {
    assert(repairing.location.eql(entry.location.unit()));
    const is_right = std.mem.eql(u8, &block.hashOf(bytes), &entry.hash);
    if (!is_right and !simulated.has(.repair_unchecked)) return error.Wrong;
    repairing.blockOf(entry.location).* = bytes.*;
    repairing.absent &= ~(@as(unit.BlockSet, 1) << entry.location.place().index);
}

/// Writes the unit in its place; it is durable afterwards.
pub fn write(repairing: *UnitRepair, data: *FileSet) WriteError!void {
    const location = repairing.location;
    if (!unit.isPossible(location)) return error.Misfit;
    repairing.takeRest(data);
    const raw = repairing.rawOf();
    const place = repairing.stored[0..location.storedSize()];
    var absent = repairing.absent;
    if (simulated.has(.absent_is_forgotten)) absent = 0;
    if (!unit.packAgain(.{ .quick = &repairing.table }, place, raw, absent) and
        !unit.packAgain(.{ .small = &repairing.search }, place, raw, absent)) return error.Misfit;
    var name: Files.Name = undefined;
    const files = data.files;
    const handle = try files.open(data.nameOf(location.file, &name), .write);
    defer files.close(handle);
    const size = try files.size(handle);
    if (size < location.offset() + place.len) {
        // An appender takes the size for the end of what is in use.
        if (!try files.tryLock(handle, true)) return error.Locked;
    }
    const skipped: usize = if (simulated.has(.repair_elsewhere)) block.unit_sector_size else 0;
    files.write(handle, place, location.offset() + skipped) catch |err| switch (err) {
        error.DiskFailed => try repairing.writePages(files, handle, size),
        else => return err,
    };
    try files.sync(handle);
}

/// A disk that failed once may read the unit now: no block that it has is lost by the repair.
fn takeRest(repairing: *UnitRepair, data: *FileSet) void {
    const location = repairing.location;
    const stored = repairing.stored[0..location.storedSize()];
    const is_whole = data.read(location, 0, stored) catch return;
    const raw = repairing.rawOf();
    const there = repairing.there[0..raw.len];
    const absent = if (is_whole) unit.unpack(there, stored) catch return else return;
    for (0..blockCount(location)) |index| {
        if (!unit.isIn(repairing.absent, index) or unit.isIn(absent, index)) continue;
        const begin = index * block.block_size;
        @memcpy(raw[begin..][0..block.block_size], there[begin..][0..block.block_size]);
    }
    repairing.absent &= absent;
}

/// A file system reads the rest of its block before it writes a part of one, and cannot if the disk
/// has lost that sector. So the whole block is written; what else of it is lost is zeros, which are
/// damage too.
fn writePages(
    repairing: *UnitRepair,
    files: Files,
    handle: Files.Handle,
    size: u64,
) Files.Error!void {
    const begin = repairing.location.offset();
    const end = begin + repairing.location.storedSize();
    const pages_begin = std.mem.alignBackward(u64, begin, block.block_size);
    // Behind the end of the file another process may append.
    const pages_end = @max(end, @min(size, std.mem.alignForward(u64, end, block.block_size)));
    const pages = repairing.pages[0..@intCast(pages_end - pages_begin)];
    const head: usize = @intCast(begin - pages_begin);
    const tail: usize = @intCast(end - pages_begin);
    try readOrZeros(files, handle, pages[0..head], pages_begin);
    @memcpy(pages[head..tail], repairing.stored[0 .. tail - head]);
    try readOrZeros(files, handle, pages[tail..], end);
    try files.write(handle, pages, pages_begin);
}

fn readOrZeros(
    files: Files,
    handle: Files.Handle,
    buffer: []u8,
    offset: u64,
) Files.Error!void {
    if (buffer.len == 0) return;
    const count = files.read(handle, buffer, offset) catch |err| switch (err) {
        error.DiskFailed => 0,
        else => return err,
    };
    @memset(buffer[count..], 0);
}

fn rawOf(repairing: *UnitRepair) []u8 {
    return repairing.raw[0 .. blockCount(repairing.location) * block.block_size];
}

fn blockOf(repairing: *UnitRepair, location: Location) *block.Block {
    const index: usize = location.place().index;
    assert(index < blockCount(repairing.location));
    return repairing.raw[index * block.block_size ..][0..block.block_size];
}

fn blockCount(location: Location) usize {
    return @as(usize, location.place().last) + 1;
}

/// A block of a version, by its index on the disk.
pub const Part = struct { index: u64, entry: Entry };
pub const Parts = base.BoundedArray(Part, unit.blocks_max);

/// Returns a damaged block and, if it is packed, the other blocks of its version in the unit.
pub fn partsOf(reader: *VersionReader, damaged: Part) Parts {
    var parts: Parts = .empty;
    parts.appendAssumeCapacity(damaged);
    if (!damaged.entry.location.is_packed) return parts;
    const location = damaged.entry.location.unit();
    // A unit has blocks of one 32 KiB of the disk.
    const first = damaged.index - damaged.index % unit.blocks_max;
    const end = @min(first + unit.blocks_max, block.blockCount(reader.disk_size));
    for (first..end) |index| {
        if (index == damaged.index) continue;
        const entry = reader.entryOf(index) catch continue;
        if (entry.isZeros() or !entry.location.is_packed) continue;
        if (!entry.location.unit().eql(location)) continue;
        parts.appendAssumeCapacity(.{ .index = index, .entry = entry });
    }
    return parts;
}
