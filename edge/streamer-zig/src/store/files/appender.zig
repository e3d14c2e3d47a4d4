//! Appends blocks, nodes or packed units to the last file of a kind. They are durable after `sync`.
//! What a crash leaves behind the last sync is unreferenced garbage, and later blocks are appended
//! behind it. Nothing is written to 4 KiB that an earlier sync has made durable: a power cut may
//! destroy what a disk rewrites.
//!
//! Several appenders may work at a time, each on its own locked file. Only the holder of the
//! store's change lock takes an existing file (`open`, or the first `append`); later files are
//! created, and whoever creates a name first owns it.

const std = @import("std");
const block = @import("../block.zig");
const FileSet = @import("file_set.zig");
const files_module = @import("files.zig");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;

const Block = block.Block;
const Handle = files_module.Handle;
const Location = block.Location;

pub const Error = files_module.Error;

/// A file of this size is full: small enough to be copied or freed as one, large enough to keep the
/// number of files low.
pub const file_size_max_default: u64 = 16 << 30;
const buffer_blocks = 64;
const Buffer = [buffer_blocks * block.block_size]u8;

pub const Appender = @This();

set: *FileSet,
file_size_max: u64,
file: block.FileNumber = 0,
handle: Handle = undefined,
/// Bytes from the start of the file to the buffer.
first: u64 = 0,
/// Bytes of the buffer.
filled: usize = 0,
buffer: *Buffer,
/// The name of a file created since the last sync is not durable.
is_new: bool = false,
written_blocks: u64 = 0,

pub fn init(gpa: std.mem.Allocator, set: *FileSet, file_size_max: u64) error{OutOfMemory}!Appender {
    assert(file_size_max >= block.block_size);
    // The location of a unit has 28 bits for its sector.
    assert(file_size_max < 128 << 30);
    return .{
        .set = set,
        .file_size_max = file_size_max,
        .buffer = try gpa.create(Buffer),
    };
}

pub fn deinit(appender: *Appender, gpa: std.mem.Allocator) void {
    if (appender.file != 0) appender.set.files.close(appender.handle);
    gpa.destroy(appender.buffer);
    appender.* = undefined;
}

/// Returns the location of the next block. Requires the change lock; later calls of `append` do
/// not.
pub fn open(appender: *Appender) Error!Location {
    if (appender.file == 0) try appender.openLast();
    return .{ .file = appender.file, .block = @intCast(block.blockCount(appender.endOffset())) };
}

/// Returns the location of the block, which can be read after `flush`.
pub fn append(appender: *Appender, bytes: *const Block) Error!Location {
    const at = try appender.put(bytes, block.block_size);
    appender.written_blocks += 1;
    return .{ .file = appender.file, .block = @intCast(at / block.block_size) };
}

pub const UnitPlace = struct { file: block.FileNumber, sector: u28 };

/// Returns where the packed unit is, which can be read after `flush`.
pub fn appendUnit(appender: *Appender, stored: []const u8) Error!UnitPlace {
    const at = try appender.put(stored, block.unit_sector_size);
    return .{ .file = appender.file, .sector = @intCast(at / block.unit_sector_size) };
}

/// Returns the offset in the file.
fn put(appender: *Appender, bytes: []const u8, comptime alignment: usize) Error!u64 {
    assert(bytes.len > 0 and bytes.len % alignment == 0);
    if (appender.file == 0) try appender.openLast();
    if (appender.endOffset() >= appender.file_size_max) try appender.startNext();
    const end = appender.endOffset();
    const skipped: usize = @intCast(std.mem.alignForward(u64, end, alignment) - end);
    if (appender.filled + skipped + bytes.len > appender.buffer.len) {
        try appender.flush();
        appender.first = std.mem.alignForward(u64, appender.first, alignment);
    } else {
        @memset(appender.buffer[appender.filled..][0..skipped], 0);
        appender.filled += skipped;
    }
    const at = appender.endOffset();
    @memcpy(appender.buffer[appender.filled..][0..bytes.len], bytes);
    appender.filled += bytes.len;
    return at;
}

pub fn flush(appender: *Appender) Error!void {
    if (appender.filled == 0) return;
    const bytes = appender.buffer[0..appender.filled];
    try appender.set.files.write(appender.handle, bytes, appender.first);
    appender.first += appender.filled;
    appender.filled = 0;
}

/// Flushes the buffer if the block is still in it.
pub fn reveal(appender: *Appender, location: Location) Error!void {
    if (location.file != appender.file) return;
    if (location.offset() + location.storedSize() > appender.first) try appender.flush();
}

/// Makes everything appended so far durable.
pub fn sync(appender: *Appender) Error!void {
    if (appender.file == 0) return;
    try appender.flush();
    try appender.set.files.sync(appender.handle);
    appender.first = std.mem.alignForward(u64, appender.first, block.block_size);
    if (appender.is_new) try appender.set.files.syncDir(appender.set.kind.dir());
    appender.is_new = false;
}

fn endOffset(appender: *const Appender) u64 {
    return appender.first + appender.filled;
}

fn openLast(appender: *Appender) Error!void {
    const last = try appender.set.last();
    // It may belong to a running import.
    if (last == 0 or !try appender.takeFile(last)) return appender.makeNext();
}

/// Continues behind the end of a file; returns false if somebody else appends to it.
fn takeFile(appender: *Appender, file: block.FileNumber) Error!bool {
    const set = appender.set;
    var name: files_module.Name = undefined;
    const handle = try set.files.open(set.nameOf(file, &name), .write);
    errdefer set.files.close(handle);
    if (!simulated.has(.append_beside_others) and !try set.files.tryLock(handle, true)) {
        set.files.close(handle);
        return false;
    }
    const size = try set.files.size(handle);
    appender.handle = handle;
    appender.file = file;
    const end = std.mem.alignForward(u64, size, block.block_size);
    appender.first = if (simulated.has(.append_over_others)) 0 else end;
    return true;
}

fn startNext(appender: *Appender) Error!void {
    try appender.sync();
    appender.set.files.close(appender.handle);
    appender.file = 0;
    return appender.makeNext();
}

fn makeNext(appender: *Appender) Error!void {
    const set = appender.set;
    while (true) {
        const made = try set.make();
        errdefer set.files.close(made.handle);
        // Another appender may already have taken it as the last file.
        if (!try set.files.tryLock(made.handle, true)) {
            set.files.close(made.handle);
            continue;
        }
        appender.handle = made.handle;
        appender.file = made.file;
        appender.first = 0;
        appender.is_new = true;
        return;
    }
}

const testing = std.testing;
const LinuxFiles = @import("linux_files.zig");

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    set: FileSet,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        try fixture.on.files().makeDir("extents");
        fixture.set = .init(fixture.on.files(), .extents);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.set.deinit();
        fixture.tmp.cleanup();
    }

    fn sizeOf(fixture: *Fixture, file: block.FileNumber) !u64 {
        return fixture.set.files.size(try fixture.set.handleOf(file));
    }
};

test "blocks follow each other, a full file is followed by the next, and each is read where it is said to be" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const most = 2 * buffer_blocks + 1;
    var appender: Appender =
        try .init(testing.allocator, &fixture.set, most * block.block_size);
    defer appender.deinit(testing.allocator);
    try testing.expect((try appender.open()).eql(.{ .file = 1, .block = 0 }));
    for (0..2 * most + 1) |index| {
        const bytes: Block = @splat(@truncate(index));
        const location = try appender.append(&bytes);
        const expected: Location =
            .{ .file = @intCast(1 + index / most), .block = @intCast(index % most) };
        try testing.expect(location.eql(expected));
        try testing.expect((try appender.open()).eql(expected.plus(1)));
        // Only full buffers are written before somebody wants to read.
        if (index < most) try testing.expectEqual(
            index / buffer_blocks * buffer_blocks * block.block_size,
            try fixture.sizeOf(1),
        );
    }
    try testing.expectEqual(2 * most + 1, appender.written_blocks);
    const last: Location = .{ .file = 3, .block = 0 };
    var byte: [1]u8 = undefined;
    // Of an earlier file and of an earlier block: nothing has to be written.
    try appender.reveal(.{ .file = 2, .block = 5 });
    try testing.expect(!try fixture.set.read(last, 0, &byte));
    try appender.reveal(last);
    try testing.expect(try fixture.set.read(last, 4095, &byte));
    try testing.expectEqual(2 * most & 0xff, byte[0]);
    _ = try appender.append(&@as(Block, @splat(7)));
    try appender.reveal(last);
    try testing.expect(!try fixture.set.read(last.plus(1), 0, &byte));
    try appender.sync();
    try testing.expectEqual(2 * block.block_size, try fixture.sizeOf(3));
    for (0..2 * most) |index| {
        const location: Location =
            .{ .file = @intCast(1 + index / most), .block = @intCast(index % most) };
        try testing.expect(try fixture.set.read(location, 4000, &byte));
        try testing.expectEqual(index & 0xff, byte[0]);
    }
}

test "units follow each other by sectors, and blocks and what comes after a sync begin at 4 KiB" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var appender: Appender = try .init(testing.allocator, &fixture.set, 1 << 20);
    defer appender.deinit(testing.allocator);
    const sector = block.unit_sector_size;
    const unit: [11 * sector]u8 = @splat('u');
    const bytes: Block = @splat('b');
    var prng: std.Random.DefaultPrng = .init(1);
    const random = prng.random();
    var end: u64 = 0;
    var places: [150]struct { offset: u64, size: usize, byte: u8 } = undefined;
    for (&places) |*place| {
        const is_unit = random.uintLessThan(u8, 4) > 0;
        const size = if (is_unit) sector * (1 + random.uintLessThan(usize, 11)) else bytes.len;
        const at = if (is_unit) at: {
            const at = try appender.appendUnit(unit[0..size]);
            try testing.expectEqual(1, at.file);
            break :at @as(u64, at.sector) * sector;
        } else (try appender.append(&bytes)).offset();
        const expected = if (is_unit) end else std.mem.alignForward(u64, end, bytes.len);
        try testing.expectEqual(expected, at);
        place.* = .{ .offset = at, .size = size, .byte = if (is_unit) 'u' else 'b' };
        end = at + size;
        if (random.uintLessThan(u8, 10) > 0) continue;
        try appender.sync();
        end = std.mem.alignForward(u64, end, bytes.len);
        try testing.expectEqual(end, (try appender.open()).offset());
    }
    try appender.sync();
    for (&places) |*place| {
        var back: [11 * sector]u8 = undefined;
        const location: Location =
            .{ .file = 1, .block = @intCast(place.offset / block.block_size) };
        const skip = place.offset % block.block_size;
        try testing.expect(try fixture.set.read(location, skip, back[0..place.size]));
        try testing.expect(std.mem.allEqual(u8, back[0..place.size], place.byte));
    }
}

test "an appender continues behind a torn block, and beside the file of another one" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.set.files;
    {
        const made = try fixture.set.make();
        defer files.close(made.handle);
        try files.write(made.handle, "torn", 3 * block.block_size);
    }
    var first: Appender = try .init(testing.allocator, &fixture.set, 1 << 20);
    defer first.deinit(testing.allocator);
    try first.sync();
    try testing.expectEqual(1, try fixture.set.last());
    try testing.expect((try first.append(&@as(Block, @splat(1)))).eql(.{ .file = 1, .block = 4 }));
    var second: Appender = try .init(testing.allocator, &fixture.set, 1 << 20);
    defer second.deinit(testing.allocator);
    try testing.expect((try second.append(&@as(Block, @splat(2)))).eql(.{ .file = 2, .block = 0 }));
    try testing.expectEqual(2, try fixture.set.last());
}
