//! Tests of export.zig: exported images equal what was imported.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const Export = store_module.@"export".Export;
const LinuxFiles = store_module.LinuxFiles;
const Store = store_module.Store;
const TreeBuilder = store_module.TreeBuilder;
const Uuid = base.Uuid;
const testing = std.testing;
const io = testing.io;

const id: Uuid = .fromRandom(@splat(3));
const last = 40_000;
const disk_size = last * block.block_size + 512;
const written = [_]u64{ 0, 1, 300, 10_404, last };

const Fixture = struct {
    tmp: testing.TmpDir,
    dir: std.Io.Dir,
    on: LinuxFiles,
    store: Store,
    is_canceled: std.atomic.Value(bool) = .init(false),

    fn init(fixture: *Fixture) !void {
        fixture.* =
            .{ .tmp = testing.tmpDir(.{}), .dir = undefined, .on = undefined, .store = undefined };
        fixture.dir = try fixture.tmp.dir.createDirPathOpen(
            io,
            "store",
            .{ .open_options = .{ .iterate = true } },
        );
        fixture.on = .fromFd(fixture.dir.handle);
        try Store.make(fixture.on.files(), .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
        fixture.store = try .open(testing.allocator, fixture.on.files(), .{ .cache_nodes = 16 });
        try fixture.seal();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(testing.allocator);
        fixture.dir.close(io);
        fixture.tmp.cleanup();
    }

    fn seal(fixture: *Fixture) !void {
        const store = &fixture.store;
        var change = try store.lockForChange();
        defer change.end();
        var data: Appender = try .init(testing.allocator, &store.data, 1 << 20);
        defer data.deinit(testing.allocator);
        var nodes: Appender = try .init(testing.allocator, &store.nodes, 1 << 20);
        defer nodes.deinit(testing.allocator);
        var builder: TreeBuilder = .init(&store.cache, &nodes, .zeros, block.blockCount(disk_size));
        for (written) |index| {
            const bytes = blockOf(index);
            try builder.put(
                index,
                .{ .hash = block.hashOf(&bytes), .location = try data.append(&bytes) },
            );
        }
        const root = try builder.finish();
        try data.sync();
        try nodes.sync();
        try change.commit(&.{
            .store = store.id,
            .organization = .zero,
            .vdisk = .fromRandom(@splat(2)),
            .version = id,
            .parent = .zero,
            .number = 1,
            .incarnation = 0,
            .counter = 1,
            .created_unix_ms = 0,
            .disk_size = disk_size,
            .root = root,
        });
    }

    fn run(fixture: *Fixture, fd: i32, target: store_module.@"export".Target) !Export {
        var version = try fixture.store.openVersion(id);
        defer version.close();
        var on: Export = .{
            .reader = &version.reader,
            .fd = fd,
            .target = target,
            .is_canceled = &fixture.is_canceled,
            .watch = .{ .context = fixture, .progress = progress },
            .done = .{ .size = disk_size },
        };
        try on.run(testing.allocator);
        return on;
    }

    fn progress(_: *anyopaque, _: *const store_module.@"export".Progress) void {}
};

/// The last block of the disk is one sector.
fn blockOf(index: u64) block.Block {
    var bytes: block.Block = @splat(0);
    const size: usize = if (index == last) 512 else block.block_size;
    @memset(bytes[0..size], @truncate(index + 1));
    return bytes;
}

fn expectImage(file: std.Io.File) !void {
    try testing.expectEqual(disk_size, (try file.stat(io)).size);
    var found: usize = 0;
    for (0..last + 1) |index| {
        var bytes: block.Block = @splat(0);
        _ = try file.readPositionalAll(io, &bytes, index * block.block_size);
        const is_written = found < written.len and written[found] == index;
        if (is_written) found += 1;
        const expected: block.Block = if (is_written) blockOf(index) else @splat(0);
        try testing.expect(std.mem.eql(u8, &expected, &bytes));
    }
}

test "an exported file is the disk, with holes where it has zeros" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    const done = try fixture.run(file.handle, .file);
    try testing.expectEqual(disk_size, done.done.position);
    try testing.expect(done.done.written_bytes < 5 << 20);
    try expectImage(file);
}

test "an interrupted export resumes, whatever its file contains" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    const junk: [9000]u8 = @splat('j');
    try file.writePositionalAll(io, &junk, 250 * block.block_size);
    try file.writePositionalAll(io, &blockOf(1), block.block_size);
    try file.writePositionalAll(io, &junk, disk_size + 4096);
    const done = try fixture.run(file.handle, .begun_file);
    try testing.expect(done.done.kept_bytes >= block.block_size);
    try expectImage(file);
}

test "a damaged block is never written to an image" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    const handle = try files.open("extents/000001", .write);
    try files.write(handle, "x", 2 * block.block_size + 7);
    files.close(handle);
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    try testing.expectError(error.Damaged, fixture.run(file.handle, .file));
    var bytes: [4096]u8 = undefined;
    _ = try file.readPositionalAll(io, &bytes, 300 * block.block_size);
    try testing.expect(block.isZeros(&bytes));
}

test "a stream gets every byte of the disk in order" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    // A file that is written where it is: like a pipe, it takes the bytes as they come.
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    const done = try fixture.run(file.handle, .stream);
    try testing.expectEqual(disk_size, done.done.written_bytes);
    try testing.expectEqual(disk_size, done.done.position);
    try testing.expectEqual(0, done.done.kept_bytes);
    try expectImage(file);
}

test "a device with old bytes becomes the disk" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    const junk: [3 * block.block_size]u8 = @splat('j');
    try file.setLength(io, disk_size);
    for ([_]u64{ 0, 2, 299, 20_000 }) |index|
        try file.writePositionalAll(io, &junk, index * block.block_size);
    _ = try fixture.run(file.handle, .block_device);
    try expectImage(file);
}

test "a resumed export writes the blocks that differ, and counts what it kept" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    const first = try fixture.run(file.handle, .file);
    try testing.expectEqual(0, first.done.kept_bytes);
    const whole = first.done.written_bytes;
    const again = try fixture.run(file.handle, .begun_file);
    try testing.expectEqual(0, again.done.written_bytes);
    try testing.expectEqual(whole, again.done.kept_bytes);
    try file.writePositionalAll(io, "x", 301 * block.block_size - 1);
    try file.writePositionalAll(io, "x", disk_size - 1);
    const mended = try fixture.run(file.handle, .begun_file);
    try testing.expectEqual(block.block_size + 512, mended.done.written_bytes);
    try testing.expectEqual(whole, mended.done.kept_bytes + mended.done.written_bytes);
    try expectImage(file);
}

test "an export that fails or is canceled reports where, and how far it came" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    // The third block that is stored: number 300.
    const handle = try files.open("extents/000001", .write);
    try files.write(handle, "x", 2 * block.block_size + 7);
    files.close(handle);
    const file = try fixture.tmp.dir.createFile(io, "out", .{ .read = true });
    defer file.close(io);
    var version = try fixture.store.openVersion(id);
    defer version.close();
    for ([_]store_module.@"export".Target{ .file, .stream, .begun_file }) |target| {
        var steps: Steps = .{};
        var on: Export = .{
            .reader = &version.reader,
            .fd = file.handle,
            .target = target,
            .is_canceled = &fixture.is_canceled,
            .watch = .{ .context = &steps, .progress = Steps.note },
            .done = .{ .size = disk_size },
        };
        try testing.expectError(error.Damaged, on.run(testing.allocator));
        try testing.expectEqual(300 * block.block_size, on.failed_at);
        try testing.expect(on.done.position <= 300 * block.block_size);
        try testing.expectEqual(steps.last, on.done.position);
        fixture.is_canceled.store(true, .monotonic);
        on.done = .{ .size = disk_size };
        try testing.expectError(error.Canceled, on.run(testing.allocator));
        try testing.expectEqual(0, on.done.position);
        fixture.is_canceled.store(false, .monotonic);
    }
}

const Steps = struct {
    last: u64 = 0,

    fn note(context: *anyopaque, done: *const store_module.@"export".Progress) void {
        const steps: *Steps = @ptrCast(@alignCast(context));
        std.debug.assert(done.position > steps.last);
        // Zeros are skipped at once; everything else ends with a piece.
        std.debug.assert(done.position - steps.last <= disk_size);
        steps.last = done.position;
    }
};

test "a target that cannot be written is reported as such" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const full = try std.Io.Dir.openFileAbsolute(io, "/dev/full", .{ .mode = .read_write });
    defer full.close(io);
    try testing.expectError(error.NoSpace, fixture.run(full.handle, .stream));
    const file = try fixture.tmp.dir.createFile(io, "out", .{});
    file.close(io);
    const read_only = try fixture.tmp.dir.openFile(io, "out", .{});
    defer read_only.close(io);
    try testing.expectError(error.WriteFailed, fixture.run(read_only.handle, .block_device));
}
