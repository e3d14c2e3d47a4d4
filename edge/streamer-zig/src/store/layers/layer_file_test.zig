//! Tests of layer_file.zig: what comes back is what was there, and nothing of a changed file is
//! taken.

const std = @import("std");
const base = @import("base");
const BlockSource = @import("../block_source.zig");
const layer_file = @import("layer_file.zig");
const LinuxFiles = @import("../files/linux_files.zig");
const WriteLayer = @import("write_layer.zig");
const testing = std.testing;
const gpa = testing.allocator;
const block_size = WriteLayer.block_size;

/// Ends within a block.
const disk_size = 700 * block_size + 1536;

const binding: WriteLayer.Binding = .{
    .class = .edge_persistent,
    .device_id = .fromBytes(@splat(2)),
    .version_id = .fromBytes(@splat(3)),
    .version_root = @splat(4),
    .disk_size = disk_size,
};

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    batch: *WriteLayer.Batch,
    rotten_at: u64 = 0,
    calls_left: u32 = 1000,

    fn init(fixture: *Fixture) !void {
        fixture.* = .{
            .tmp = testing.tmpDir(.{}),
            .on = undefined,
            .batch = try gpa.create(WriteLayer.Batch),
        };
        fixture.on = .fromFd(fixture.tmp.dir.handle);
    }

    fn deinit(fixture: *Fixture) void {
        gpa.destroy(fixture.batch);
        fixture.tmp.cleanup();
    }

    fn below() BlockSource {
        const vtable: *const BlockSource.VTable = &.{ .read = readBelow };
        return .{ .context = @constCast("b"), .vtable = vtable, .size = disk_size };
    }

    fn readBelow(_: *anyopaque, buffer: []u8, _: u64) BlockSource.ReadError!void {
        @memset(buffer, 'b');
    }

    fn write(fixture: *Fixture) !void {
        var layer: WriteLayer = try .create(gpa, fixture.on.files(), "one", .{
            .layer_id = .fromBytes(@splat(1)),
            .binding = binding,
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, below());
        defer layer.close(gpa);
        var bytes: [300 * block_size]u8 = undefined;
        for (&bytes, 0..) |*byte, at| byte.* = @truncate(at / 511);
        try layer.write(bytes[0 .. 256 * block_size], 3 * block_size);
        try layer.write(bytes[0 .. 44 * block_size], 259 * block_size);
        try layer.write(bytes[0..512], 400 * block_size + 512);
        // Zeros, of which some take no space, over bytes and over nothing.
        try layer.discard(20 * block_size, 2 * block_size);
        try layer.discard(500 * block_size, 90 * block_size);
        try layer.write(bytes[0..1536], 700 * block_size);
        try layer.flush(fixture.batch);
        layer.settle(fixture.batch);
    }

    fn exported(fixture: *Fixture, into: *std.Io.Writer) !layer_file.Contents {
        return layer_file.exportLayer(
            gpa,
            fixture.on.files(),
            "one",
            into,
            fixture.progress(),
            &fixture.rotten_at,
        );
    }

    fn import(fixture: *Fixture, bytes: []const u8, dir: []const u8) !layer_file.Contents {
        var reader: std.Io.Reader = .fixed(bytes);
        const head: layer_file.FileHead = try .take(&reader);
        return layer_file.importLayer(
            gpa,
            fixture.on.files(),
            dir,
            &reader,
            &head,
            .fromBytes(@splat(9)),
            fixture.progress(),
        );
    }

    fn progress(fixture: *Fixture) layer_file.Progress {
        return .{ .context = fixture, .call = onProgress };
    }

    fn onProgress(context: *anyopaque, done: u64, size: u64) bool {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        std.debug.assert(done <= size);
        if (fixture.calls_left == 0) return false;
        fixture.calls_left -= 1;
        return true;
    }

    fn contentOf(fixture: *Fixture, dir: []const u8, into: []u8) !void {
        const files = fixture.on.files();
        var layer: WriteLayer = try .open(gpa, files, dir, &binding, below());
        defer layer.close(gpa);
        try layer.read(into, 0);
        layer.settle(fixture.batch);
    }
};

test "a layer comes back from its file with every byte, and its zeros take no space" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.write();
    var file: std.Io.Writer.Allocating = .init(gpa);
    defer file.deinit();
    const there = try fixture.exported(&file.writer);
    try testing.expectEqual(300 + 1 + 90 + 1, there.blocks);
    try testing.expect(file.written().len < 305 * block_size);
    const back = try fixture.import(file.written(), "two");
    try testing.expectEqual(there.blocks, back.blocks);
    const first = try gpa.alloc(u8, disk_size);
    defer gpa.free(first);
    const second = try gpa.alloc(u8, disk_size);
    defer gpa.free(second);
    try fixture.contentOf("one", first);
    try fixture.contentOf("two", second);
    try testing.expectEqualSlices(u8, first, second);
    var layer: WriteLayer =
        try .open(gpa, fixture.on.files(), "two", &binding, Fixture.below());
    defer layer.close(gpa);
    try testing.expectEqual(1 << 30, layer.head.limit_bytes);
    try testing.expect(layer.head.layer_id.eql(.fromBytes(@splat(9))));
    try testing.expect(layer.usedBytes() <= 302 * block_size);
    // Its device runs.
    try testing.expectError(error.Exists, fixture.import(file.written(), "two"));
}

test "a file that was changed, cut off or lengthened anywhere makes no layer" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.write();
    var file: std.Io.Writer.Allocating = .init(gpa);
    defer file.deinit();
    _ = try fixture.exported(&file.writer);
    const bytes = file.written();
    var prng: base.Prng = .init(1);
    for (0..200) |index| {
        // Each byte of the heads of file and first piece, then any.
        const at: usize = if (index < 60) index * 18 else @intCast(prng.below(bytes.len));
        bytes[at] ^= 0x10;
        const result = fixture.import(bytes, "two");
        try testing.expect(std.meta.isError(result));
        try WriteLayer.remove(fixture.on.files(), "two");
        bytes[at] ^= 0x10;
    }
    for ([_]usize{ 0, 7, 511, 1023, 1024, 1040, 9000, bytes.len - 48, bytes.len - 1 }) |size| {
        const result = fixture.import(bytes[0..size], "two");
        try testing.expectError(
            if (size < 512) error.NotACache else error.DamagedFile,
            result,
        );
        try WriteLayer.remove(fixture.on.files(), "two");
    }
    bytes[8] = 2;
    try testing.expectError(error.NewerFile, fixture.import(bytes, "two"));
}

test "a layer in use, or with a block that has rotted, is not exported, and a stop is one" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    try fixture.write();
    var discarding: std.Io.Writer.Discarding = .init(&.{});
    {
        var layer: WriteLayer = try .open(gpa, files, "one", &binding, Fixture.below());
        defer layer.close(gpa);
        try testing.expectError(error.InUse, fixture.exported(&discarding.writer));
        layer.settle(fixture.batch);
    }
    fixture.calls_left = 1;
    try testing.expectError(error.Canceled, fixture.exported(&discarding.writer));
    const data = try files.open("one/data", .write);
    try files.write(data, "rot", 7 * block_size + 9);
    files.close(data);
    try testing.expectError(error.Rotten, fixture.exported(&discarding.writer));
    try testing.expectEqual(7 * block_size, fixture.rotten_at);
    try files.remove("one/map");
    try testing.expectError(error.Lost, fixture.exported(&discarding.writer));
}
