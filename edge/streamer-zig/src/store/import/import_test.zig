//! Tests of import.zig: an image becomes a version completely or not at all, wherever an import is
//! interrupted.

const std = @import("std");
const base = @import("base");
const store_module = @import("../store.zig");

const block = store_module.block;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const FdSource = store_module.image_source.FdSource;
const Import = store_module.import.Import;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Store = store_module.Store;
const Uuid = base.Uuid;
const linux = std.os.linux;
const testing = std.testing;
const io = testing.io;

const Fixture = struct {
    tmp: testing.TmpDir,
    dir: std.Io.Dir,
    on: LinuxFiles,
    store: Store,
    is_canceled: std.atomic.Value(bool) = .init(false),
    /// The import is canceled at this position, in bytes.
    cancel_at: u64 = std.math.maxInt(u64),
    /// The position that the last call of `progress` reported, in bytes.
    position: u64 = 0,
    /// What the last call of `progress` reported.
    done: store_module.import.Progress = .{},
    /// The longest distance between two reported positions, in bytes.
    position_step_max: u64 = 0,
    /// Runs once after a piece of the next import was read, as another process would; and its
    /// result.
    meanwhile: ?*const fn (*Fixture) anyerror!void = null,
    meanwhile_result: anyerror!void = {},

    var clock_us: u64 = 0;

    fn init(fixture: *Fixture) !void {
        fixture.* =
            .{ .tmp = testing.tmpDir(.{}), .dir = undefined, .on = undefined, .store = undefined };
        fixture.dir = try fixture.tmp.dir.createDirPathOpen(
            io,
            "store",
            .{ .open_options = .{ .iterate = true } },
        );
        fixture.on = .fromFd(fixture.dir.handle);
        try Store.make(fixture.on.files(), .{ .id = idOf(1), .seed = @splat(5) });
        fixture.store = try .open(
            testing.allocator,
            fixture.on.files(),
            .{ .cache_nodes = 16, .file_size_max = 4 << 20 },
        );
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(testing.allocator);
        fixture.dir.close(io);
        fixture.tmp.cleanup();
    }

    fn wanted(version: Uuid, parent: Uuid) Checkpoint {
        return .{
            .version = version,
            .vdisk = idOf(2),
            .parent = parent,
            .number = 1,
            .pad = false,
            .stamp = undefined,
            .source_size = undefined,
            .root_level = undefined,
        };
    }

    /// Starts the import of this version, or resumes it.
    fn import(fixture: *Fixture, on: *FdSource, asked: Checkpoint) !Manifest {
        const given: Import.Options = .{
            .gpa = testing.allocator,
            .io = io,
            .source = on.source(),
            .is_canceled = &fixture.is_canceled,
            .watch = .{ .context = fixture, .progress = progress, .monotonicUs = monotonicUs },
        };
        var running: Import = blk: {
            var change = try fixture.store.lockForChange();
            defer change.end();
            break :blk if (Checkpoint.read(fixture.store.files, asked.version)) |checkpoint|
                try .proceed(given, &change, checkpoint)
            else |_|
                try .begin(given, &change, asked);
        };
        defer running.deinit();
        try running.read();
        var change = try fixture.store.lockForChange();
        defer change.end();
        return running.finish(&change);
    }

    fn importBytes(fixture: *Fixture, bytes: []const u8, asked: Checkpoint) !Manifest {
        try fixture.tmp.dir.writeFile(io, .{ .sub_path = "image", .data = bytes });
        return fixture.importFile(asked);
    }

    fn importFile(fixture: *Fixture, asked: Checkpoint) !Manifest {
        var on = try fixture.openImage();
        defer on.close();
        return fixture.import(&on, asked);
    }

    fn importStream(fixture: *Fixture, bytes: []const u8, asked: Checkpoint) !Manifest {
        var fds: [2]i32 = undefined;
        try testing.expectEqual(.SUCCESS, linux.errno(linux.pipe2(&fds, .{ .CLOEXEC = true })));
        const writer = try std.Thread.spawn(.{}, writeStream, .{ fds[1], bytes });
        defer writer.join();
        var on: FdSource = try .fromFd(fds[0], &fixture.is_canceled);
        defer on.close();
        return fixture.import(&on, asked);
    }

    fn openImage(fixture: *Fixture) !FdSource {
        const file = try fixture.tmp.dir.openFile(io, "image", .{});
        return .fromFd(file.handle, &fixture.is_canceled);
    }

    fn progress(context: *anyopaque, done: *const store_module.import.Progress) void {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        fixture.position_step_max =
            @max(fixture.position_step_max, done.position -| fixture.position);
        fixture.position = done.position;
        fixture.done = done.*;
        if (done.position >= fixture.cancel_at) fixture.is_canceled.store(true, .monotonic);
        const meanwhile = fixture.meanwhile orelse return;
        fixture.meanwhile = null;
        fixture.meanwhile_result = meanwhile(fixture);
    }

    /// Each call is a minute later, so that every piece ends with a checkpoint.
    fn monotonicUs() u64 {
        clock_us += 60 * std.time.us_per_s;
        return clock_us;
    }

    fn expectDisk(fixture: *Fixture, id: Uuid, expected: []const u8) !void {
        var version = try fixture.store.openVersion(id);
        defer version.close();
        const source = version.reader.source();
        try testing.expectEqual(expected.len, source.size);
        const bytes = try testing.allocator.alloc(u8, expected.len);
        defer testing.allocator.free(bytes);
        try source.read(bytes, 0);
        try testing.expect(std.mem.eql(u8, expected, bytes));
    }

    fn storedBlocks(fixture: *Fixture) !u64 {
        var count: u64 = 0;
        var file: block.FileNumber = 0;
        while (try fixture.store.data.next(file)) |found| {
            file = found;
            const handle = try fixture.store.data.handleOf(found);
            count += block.blockCount(try fixture.store.files.size(handle));
        }
        return count;
    }
};

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

fn writeStream(fd: i32, bytes: []const u8) void {
    defer _ = linux.close(fd);
    var at: usize = 0;
    while (at < bytes.len) {
        const rc = linux.write(fd, bytes[at..].ptr, bytes.len - at);
        // The reader has closed the pipe.
        if (linux.errno(rc) != .SUCCESS) return;
        at += rc;
    }
}

/// Blocks that differ; every fourth one is zeros.
fn imageOf(size: usize) ![]u8 {
    const bytes = try testing.allocator.alloc(u8, size);
    var prng: base.Prng = .init(3);
    for (0..size) |at| {
        const is_zero = at / block.block_size % 4 == 1;
        bytes[at] = if (is_zero) 0 else @intCast(1 + prng.below(255));
    }
    return bytes;
}

test "an image becomes a version; an update of it shares equal blocks, also where blocks became zeros" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf((3 << 20) + 512);
    defer testing.allocator.free(bytes);
    const first = try fixture.importBytes(bytes, Fixture.wanted(idOf(3), .zero));
    try testing.expectEqual(bytes.len, first.disk_size);
    try fixture.expectDisk(idOf(3), bytes);
    const before = try fixture.storedBlocks();
    bytes[0] ^= 1;
    bytes[bytes.len - 1] ^= 1;
    @memset(bytes[8 * block.block_size ..][0 .. 1 << 20], 0);
    const second = try fixture.importBytes(bytes, Fixture.wanted(idOf(4), idOf(3)));
    try testing.expectEqual(before + 2, try fixture.storedBlocks());
    try testing.expectEqual(first.counter + 1, second.counter);
    try fixture.expectDisk(idOf(4), bytes);
    // The same image without a parent has the same root, wherever its blocks are stored.
    const alone = try fixture.importBytes(bytes, Fixture.wanted(idOf(5), .zero));
    try testing.expectEqual(second.root.hash, alone.root.hash);
    // Neither a checkpoint nor a lock is left of an import that is done.
    var name: store_module.files.Name = undefined;
    try testing.expectEqual(null, try fixture.store.files.nextName("imports", "", &name));
}

test "an import counts each byte of its image once: as zeros, as shared or as written" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf((2 << 20) + 512);
    defer testing.allocator.free(bytes);
    _ = try fixture.importBytes(bytes, Fixture.wanted(idOf(3), .zero));
    // Every fourth block is zeros, and the last one has a sector.
    try testing.expectEqual(store_module.import.Progress{
        .position = bytes.len,
        .size = bytes.len,
        .zero_bytes = 512 << 10,
        .written_bytes = (1536 << 10) + 512,
    }, fixture.done);
    bytes[0] ^= 1;
    bytes[bytes.len - 1] ^= 1;
    @memset(bytes[2 * block.block_size ..][0..block.block_size], 0);
    _ = try fixture.importBytes(bytes, Fixture.wanted(idOf(4), idOf(3)));
    try testing.expectEqual(store_module.import.Progress{
        .position = bytes.len,
        .size = bytes.len,
        .zero_bytes = (512 << 10) + 4096,
        .shared_bytes = (1536 << 10) - 8192,
        .written_bytes = 4096 + 512,
    }, fixture.done);
}

test "the next number of a vDisk counts its versions and its unfinished imports, and no other vDisk's" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const nextNumber = store_module.import.nextNumber;
    const bytes: [512]u8 = @splat('x');
    var asked = Fixture.wanted(idOf(3), .zero);
    asked.number = 4;
    _ = try fixture.importBytes(&bytes, asked);
    asked = Fixture.wanted(idOf(4), .zero);
    asked.stamp = .{ .kind = .file };
    asked.source_size = 512;
    asked.root_level = 0;
    asked.number = 7;
    try asked.write(fixture.store.files);
    var change = try fixture.store.lockForChange();
    defer change.end();
    try testing.expectEqual(8, try nextNumber(&change, idOf(2)));
    try testing.expectEqual(1, try nextNumber(&change, idOf(9)));
    try Checkpoint.remove(fixture.store.files, idOf(4));
    try testing.expectEqual(5, try nextNumber(&change, idOf(2)));
}

test "an import resumes from each of its checkpoints, and the version is the same" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(9 << 20);
    defer testing.allocator.free(bytes);
    const asked = Fixture.wanted(idOf(3), .zero);
    try fixture.tmp.dir.writeFile(io, .{ .sub_path = "image", .data = bytes });
    var ends: u32 = 0;
    const made = while (true) {
        // At most one more MiB in each run.
        fixture.cancel_at = (@as(u64, ends) + 1) << 20;
        fixture.is_canceled.store(false, .monotonic);
        if (fixture.importFile(asked)) |manifest|
            break manifest
        else |err|
            try testing.expectEqual(error.Canceled, err);
        try testing.expectError(error.NotFound, fixture.store.manifestOf(idOf(3)));
        ends += 1;
        fixture.store.cache.clear();
        fixture.store.units.clear();
    };
    try testing.expect(ends >= 7);
    try fixture.expectDisk(idOf(3), bytes);
    try testing.expectError(error.NoImport, Checkpoint.read(fixture.store.files, idOf(3)));
    fixture.cancel_at = std.math.maxInt(u64);
    fixture.is_canceled.store(false, .monotonic);
    const other = try fixture.importFile(Fixture.wanted(idOf(4), .zero));
    try testing.expectEqual(other.root.hash, made.root.hash);
}

test "a stream of unknown size has the tree of a file, and resumes when it is sent again from its start" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(5 << 20);
    defer testing.allocator.free(bytes);
    const asked = Fixture.wanted(idOf(3), .zero);
    fixture.cancel_at = 2 << 20;
    try testing.expectError(error.Canceled, fixture.importStream(bytes, asked));
    fixture.cancel_at = std.math.maxInt(u64);
    fixture.is_canceled.store(false, .monotonic);
    bytes[5000] ^= 1;
    try testing.expectError(error.SourceChanged, fixture.importStream(bytes, asked));
    bytes[5000] ^= 1;
    const streamed = try fixture.importStream(bytes, asked);
    try fixture.expectDisk(idOf(3), bytes);
    const read = try fixture.importBytes(bytes, Fixture.wanted(idOf(4), .zero));
    try testing.expectEqual(read.root.hash, streamed.root.hash);
    // One block: the smallest tree.
    const small = try fixture.importStream(bytes[0..512], Fixture.wanted(idOf(5), .zero));
    try testing.expectEqual(512, small.disk_size);
    try fixture.expectDisk(idOf(5), bytes[0..512]);
}

test "while an image is read others change the store: its parent stays, nobody else resumes it, and none of its blocks are freed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(9 << 20);
    defer testing.allocator.free(bytes);
    _ = try fixture.importBytes(bytes, Fixture.wanted(idOf(3), .zero));
    // Everything of the version before it is garbage once that version is deleted.
    const other = try imageOf(1 << 20);
    defer testing.allocator.free(other);
    for (other) |*byte| byte.* ^= 0x5a;
    _ = try fixture.importBytes(other, Fixture.wanted(idOf(6), .zero));
    for (bytes, 0..) |*byte, at| if (at / block.block_size % 3 == 0) {
        byte.* ^= 0xa5;
    };
    fixture.meanwhile = changeMeanwhile;
    const made = try fixture.importBytes(bytes, Fixture.wanted(idOf(4), idOf(3)));
    try fixture.meanwhile_result;
    try testing.expectEqual(null, fixture.meanwhile);
    fixture.store.cache.clear();
    fixture.store.units.clear();
    try fixture.expectDisk(idOf(4), bytes);
    // Numbered last, although it began first.
    try testing.expectEqual(made.counter, (try fixture.store.manifestOf(idOf(5))).counter + 1);
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try change.delete(idOf(3));
        _ = try collected(&change);
    }
    fixture.store.cache.clear();
    fixture.store.units.clear();
    try fixture.expectDisk(idOf(4), bytes);
}

fn changeMeanwhile(fixture: *Fixture) anyerror!void {
    const files = fixture.store.files;
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try testing.expectError(error.Locked, change.delete(idOf(3)));
        try testing.expect(try store_module.import_checkpoint.isRunning(files, idOf(4)));
        try change.delete(idOf(6));
        // Nothing behind the start of the import is free; all of the deleted version before it is,
        // of which every fourth block takes almost nothing.
        try testing.expect(try collected(&change) >= 3 << 18);
    }
    const image = try fixture.tmp.dir.openFile(io, "image", .{});
    var on: FdSource = try .fromFd(image.handle, &fixture.is_canceled);
    defer on.close();
    try testing.expectError(error.InUse, fixture.import(&on, Fixture.wanted(idOf(4), idOf(3))));
    const small = try imageOf(1 << 20);
    defer testing.allocator.free(small);
    try fixture.tmp.dir.writeFile(io, .{ .sub_path = "small", .data = small });
    const another = try fixture.tmp.dir.openFile(io, "small", .{});
    var from: FdSource = try .fromFd(another.handle, &fixture.is_canceled);
    defer from.close();
    _ = try fixture.import(&from, Fixture.wanted(idOf(5), .zero));
    try fixture.expectDisk(idOf(5), small);
}

/// Returns the number of freed bytes.
fn collected(change: *store_module.store_dir.Change) !u64 {
    var collection: store_module.collect.Collection = try .begin(testing.allocator, change);
    defer collection.end();
    while (try collection.step(1 << 20)) {}
    return collection.freed;
}

test "the garbage collection keeps what an interrupted import wrote, and its parent's blocks" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(9 << 20);
    defer testing.allocator.free(bytes);
    const asked = Fixture.wanted(idOf(3), .zero);
    try fixture.tmp.dir.writeFile(io, .{ .sub_path = "image", .data = bytes });
    fixture.cancel_at = 4 << 20;
    try testing.expectError(error.Canceled, fixture.importFile(asked));
    fixture.cancel_at = std.math.maxInt(u64);
    fixture.is_canceled.store(false, .monotonic);
    const before = (try Checkpoint.read(fixture.store.files, idOf(3))).position;
    try testing.expect(before >= 4 << 20);
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try testing.expect(
            !try store_module.import_checkpoint.isRunning(fixture.store.files, idOf(3)),
        );
        try store_module.import_checkpoint.tidy(fixture.store.files);
        try testing.expectEqual(0, try collected(&change));
    }
    fixture.store.cache.clear();
    fixture.store.units.clear();
    _ = try fixture.importFile(asked);
    fixture.store.cache.clear();
    fixture.store.units.clear();
    try fixture.expectDisk(idOf(3), bytes);
    // An abandoned import is garbage.
    fixture.cancel_at = 4 << 20;
    try testing.expectError(error.Canceled, fixture.importFile(Fixture.wanted(idOf(4), .zero)));
    var change = try fixture.store.lockForChange();
    defer change.end();
    try Checkpoint.remove(fixture.store.files, idOf(4));
    try testing.expect(try collected(&change) >= 1 << 20);
    fixture.store.cache.clear();
    fixture.store.units.clear();
    try fixture.expectDisk(idOf(3), bytes);
}

test "a checkpoint covers only pieces that are in the tree, although later pieces refill the ring" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const piece_size = store_module.image_pieces.piece_size;
    const piece_count = 24;
    const bytes = try testing.allocator.alloc(u8, piece_count * piece_size);
    defer testing.allocator.free(bytes);
    for (0..piece_count) |index|
        @memset(bytes[index * piece_size ..][0..piece_size], @intCast(index + 1));
    const asked = Fixture.wanted(idOf(3), .zero);
    try fixture.tmp.dir.writeFile(io, .{ .sub_path = "image", .data = bytes });
    fixture.cancel_at = 2 * piece_size;
    try testing.expectError(error.Canceled, fixture.importFile(asked));
    const checkpoint = try Checkpoint.read(fixture.store.files, idOf(3));
    try testing.expectEqual(2 * piece_size, checkpoint.position);
    try testing.expectEqual(checkpoint.position, fixture.position);
    fixture.cancel_at = std.math.maxInt(u64);
    fixture.is_canceled.store(false, .monotonic);
    _ = try fixture.importFile(asked);
    try testing.expectEqual(bytes.len, fixture.position);
    try testing.expectEqual(piece_size, fixture.position_step_max);
    try fixture.expectDisk(idOf(3), bytes);
}

test "an import resumes only with the same image" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(3 << 20);
    defer testing.allocator.free(bytes);
    const asked = Fixture.wanted(idOf(3), .zero);
    fixture.cancel_at = 1 << 20;
    try testing.expectError(error.Canceled, fixture.importBytes(bytes, asked));
    fixture.is_canceled.store(false, .monotonic);
    // The same bytes in a new file: nothing proves that they are equal.
    try fixture.tmp.dir.deleteFile(io, "image");
    try testing.expectError(error.SourceChanged, fixture.importBytes(bytes, asked));
    try testing.expectError(error.NotFound, fixture.store.manifestOf(idOf(3)));
}

test "an image that grows or shrinks while it is read becomes no version" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try imageOf(3 << 20);
    defer testing.allocator.free(bytes);
    for ([_]struct { u64, anyerror }{ .{ 4 << 20, error.SourceGrew }, .{
        1 << 20,
        error.SourceShrank,
    } }) |case| {
        const new_size, const expected = case;
        try fixture.tmp.dir.writeFile(io, .{ .sub_path = "image", .data = bytes });
        var on = try fixture.openImage();
        defer on.close();
        const file = try fixture.tmp.dir.openFile(io, "image", .{ .mode = .read_write });
        defer file.close(io);
        try file.setLength(io, new_size);
        try testing.expectError(expected, fixture.import(&on, Fixture.wanted(idOf(3), .zero)));
        try testing.expectError(error.NotFound, fixture.store.manifestOf(idOf(3)));
        try Checkpoint.remove(fixture.store.files, idOf(3));
    }
}

test "images that are not whole sectors are refused, or padded on request" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var odd: [1000]u8 = @splat(7);
    var asked = Fixture.wanted(idOf(3), .zero);
    try testing.expectError(error.NotSectors, fixture.importBytes(&odd, asked));
    try testing.expectError(error.NotSectors, fixture.importStream(&odd, asked));
    try Checkpoint.remove(fixture.store.files, idOf(3));
    try testing.expectError(error.Empty, fixture.importStream("", asked));
    try Checkpoint.remove(fixture.store.files, idOf(3));
    asked.pad = true;
    _ = try fixture.importBytes(&odd, asked);
    try fixture.expectDisk(idOf(3), &(odd ++ @as([24]u8, @splat(0))));
    asked = Fixture.wanted(idOf(4), idOf(3));
    try testing.expectError(error.OtherSize, fixture.importBytes(odd[0..512], asked));
    try testing.expectError(error.OtherSize, fixture.importStream(odd[0..512], asked));
    asked.parent = idOf(9);
    asked.version = idOf(5);
    try testing.expectError(error.ParentMissing, fixture.importBytes(odd[0..512], asked));
}

test "a hole of many GiB costs nothing" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const file = try fixture.tmp.dir.createFile(io, "image", .{});
    try file.setLength(io, 100 << 30);
    try file.writePositionalAll(io, "x", 50 << 30);
    file.close(io);
    _ = try fixture.importFile(Fixture.wanted(idOf(3), .zero));
    try testing.expectEqual(1, try fixture.storedBlocks());
    var version = try fixture.store.openVersion(idOf(3));
    defer version.close();
    var found: [3]u8 = undefined;
    try version.reader.source().read(&found, (50 << 30) - 1);
    try testing.expectEqualStrings("\x00x\x00", &found);
}
