//! Whole conversions in memory, read back with the reader of disks.

const std = @import("std");
const store = @import("store");
const Archive = @import("archive.zig");
const Conversion = @import("conversion.zig");
const Disk = @import("../disk.zig");
const fault_module = @import("fault.zig");
const file_system = @import("../file_system.zig");
const MemoryFile = @import("../container/file.zig").MemoryFile;
const Sink = @import("../ext4/sink.zig");
const test_archive = @import("test_archive.zig");
const TarBuilder = test_archive.TarBuilder;
const Fault = fault_module.Fault;
const testing = std.testing;

const disk_size = 64 << 20;
const not_canceled: std.atomic.Value(bool) = .init(false);

const Made = struct {
    arena: std.heap.ArenaAllocator,
    buffer: [test_archive.size_max]u8 = undefined,
    conversion: Conversion = undefined,
    bytes: []u8 = &.{},

    fn init() !*Made {
        const made = try testing.allocator.create(Made);
        made.* = .{ .arena = .init(testing.allocator) };
        return made;
    }

    fn deinit(made: *Made) void {
        made.arena.deinit();
        testing.allocator.destroy(made);
    }

    fn convert(made: *Made, layers: []const []const u8) Fault!void {
        return made.convertArchive(test_archive.dockerArchive(&made.buffer, layers));
    }

    fn convertArchive(made: *Made, bytes: []const u8) Fault!void {
        const arena = made.arena.allocator();
        const file = try arena.create(MemoryFile);
        file.* = .{ .bytes = bytes };
        const archive = try arena.create(Archive);
        archive.* = try .openFile(arena, file.source());
        try made.conversion.prepare(arena, archive, .{
            .size = disk_size,
            .needs = .{ .kernel = false },
            .is_canceled = &not_canceled,
        });
        made.bytes = try arena.alloc(u8, disk_size);
        @memset(made.bytes, 0);
        try made.conversion.write(.{ .context = made, .writeFn = write });
    }

    fn write(context: *anyopaque, bytes: []const u8, offset: u64) Sink.Error!void {
        const made: *Made = @ptrCast(@alignCast(context));
        @memcpy(made.bytes[@intCast(offset)..][0..bytes.len], bytes);
    }

    /// The text of a file, or the kind of something else.
    fn expect(made: *Made, path: []const u8, expected: ?[]const u8) !void {
        var source: store.BlockSource = .{
            .context = made,
            .vtable = &.{ .read = readDisk },
            .size = made.bytes.len,
        };
        const arena = made.arena.allocator();
        const disk = try arena.create(Disk);
        try disk.open(arena, &source);
        const text = try disk.readTextAt(arena, 0, path, 1 << 20);
        if (expected) |known| {
            try testing.expectEqualStrings(known, text orelse return error.Missing);
        } else try testing.expectEqual(null, text);
    }

    fn readDisk(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store.BlockSource.ReadError!void {
        const made: *const Made = @ptrCast(@alignCast(context));
        @memcpy(buffer, made.bytes[@intCast(offset)..][0..buffer.len]);
    }
};

fn baseLayer(into: []u8) []u8 {
    var tar: TarBuilder = .{ .bytes = into };
    tar.add("./", .{ .kind = '5', .mode = 0o755 });
    tar.add("usr/sbin/", .{ .kind = '5', .mode = 0o755 });
    tar.add("sbin", .{ .kind = '2', .target = "usr/sbin" });
    tar.add("usr/sbin/init", .{ .mode = 0o755, .content = "an init" });
    tar.add("sbin/second", .{ .kind = '1', .target = "usr/sbin/init" });
    tar.add("etc/a", .{ .content = "a of the first layer" });
    tar.add("etc/b", .{ .content = "b" });
    tar.add("var/old/x", .{ .content = "x" });
    tar.add("/../../abs/../evil", .{ .content = "inside" });
    return tar.finish();
}

test "layers become a disk: entries replace, whiteouts hide, links stay in the tree" {
    const made: *Made = try .init();
    defer made.deinit();
    var buffers: [2][32 << 10]u8 = undefined;
    const first = baseLayer(&buffers[0]);
    var tar: TarBuilder = .{ .bytes = &buffers[1] };
    tar.add("etc/a", .{ .content = "a of the second layer" });
    tar.add("etc/.wh.b", .{});
    tar.add("var/old/new", .{ .content = "new" });
    tar.add("var/old/.wh..wh..opq", .{});
    tar.add("var/.wh.nothing", .{});
    tar.add("dev/null", .{ .kind = '3', .major = 1, .minor = 3 });
    const second = tar.finish();
    try made.convert(&.{ first, second });
    try made.expect("/sbin/init", "an init");
    try made.expect("/usr/sbin/second", "an init");
    try made.expect("/etc/a", "a of the second layer");
    try made.expect("/etc/b", null);
    try made.expect("/var/old/x", null);
    try made.expect("/var/old/new", "new");
    try made.expect("/evil", "inside");
    const again: *Made = try .init();
    defer again.deinit();
    try again.convert(&.{ first, second });
    try testing.expectEqualSlices(u8, made.bytes, again.bytes);
    try testing.expectEqual(made.conversion.identity(), again.conversion.identity());
}

test "long names, sparse files and attributes of pax and GNU are read" {
    const made: *Made = try .init();
    defer made.deinit();
    var buffer: [64 << 10]u8 = undefined;
    var tar: TarBuilder = .{ .bytes = &buffer };
    tar.add("sbin/init", .{ .content = "init" });
    const long: [200]u8 = @splat('n');
    tar.pax(&.{ .{ "path", &long }, .{ "SCHILY.xattr.user.key", "value" } });
    tar.add("short", .{ .content = "long by pax" });
    tar.add("././@LongLink", .{ .kind = 'L', .content = "g/" ++ long });
    tar.add("short", .{ .content = "long by GNU" });
    tar.pax(&.{
        .{ "GNU.sparse.major", "1" },   .{ "GNU.sparse.minor", "0" },
        .{ "GNU.sparse.name", "s/10" }, .{ "GNU.sparse.realsize", "20000" },
    });
    var map: [512 + 5]u8 = @splat(0);
    @memcpy(map[0..14], "2\n0\n2\n9000\n3\n\x00");
    @memcpy(map[512..], "abcde");
    tar.add("GNUSparseFile.0/10", .{ .content = &map });
    tar.pax(&.{
        .{ "GNU.sparse.name", "s/01" },         .{ "GNU.sparse.size", "10000" },
        .{ "GNU.sparse.map", "5000,2,9000,3" },
    });
    tar.add("s/01", .{ .content = "abcde" });
    try made.convert(&.{tar.finish()});
    try made.expect("/" ++ long, "long by pax");
    try made.expect("/g/" ++ long, "long by GNU");
    var sparse: [20000]u8 = @splat(0);
    sparse[0..2].* = "ab".*;
    sparse[9000..9003].* = "cde".*;
    try made.expect("/s/10", &sparse);
    @memset(&sparse, 0);
    sparse[5000..5002].* = "ab".*;
    sparse[9000..9003].* = "cde".*;
    try made.expect("/s/01", sparse[0..10000]);
}

fn expectFault(expected: Fault, layer: []const u8) !void {
    const made: *Made = try .init();
    defer made.deinit();
    try testing.expectError(expected, made.convert(&.{layer}));
}

test "an image that cannot be a machine, and damaged entries, are refused by name" {
    var buffer: [8 << 10]u8 = undefined;
    var tar: TarBuilder = .{ .bytes = &buffer };
    tar.add("etc/a", .{ .content = "a" });
    try expectFault(error.InitMissing, tar.finish());
    tar = .{ .bytes = &buffer };
    tar.add("a", .{ .kind = '1', .target = "absent" });
    try expectFault(error.LinkTargetMissing, tar.finish());
    tar = .{ .bytes = &buffer };
    tar.add("a", .{ .kind = 'Z' });
    try expectFault(error.EntryUnknown, tar.finish());
    tar = .{ .bytes = &buffer };
    tar.add("a", .{ .kind = '2', .target = "a" });
    tar.add("a/b", .{ .content = "b" });
    try expectFault(error.LinkCycle, tar.finish());
    tar = .{ .bytes = &buffer };
    tar.add("a", .{ .size = 1 << 30 });
    try expectFault(error.Truncated, tar.finish());
    tar = .{ .bytes = &buffer };
    tar.add("a", .{});
    buffer[0] = 'b';
    try expectFault(error.HeaderDamaged, tar.finish());
}

test "a layer whose bytes differ from its digest is refused" {
    const made: *Made = try .init();
    defer made.deinit();
    var buffer: [16 << 10]u8 = undefined;
    const bytes = test_archive.dockerArchive(&made.buffer, &.{baseLayer(&buffer)});
    const at = std.mem.find(u8, bytes, "an init").?;
    bytes[at] = 'A';
    try testing.expectError(error.DigestWrong, made.convertArchive(bytes));
    try testing.expectEqual(1, made.conversion.subject.layer);
}
