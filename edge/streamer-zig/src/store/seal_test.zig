//! Tests of seal.zig on files of this machine. The simulation in src/sim/store tries the states
//! that a crash leaves.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const block = store_module.block;
const BlockSource = store_module.BlockSource;
const LinuxFiles = store_module.LinuxFiles;
const Store = store_module.Store;
const seal = store_module.seal;
const Uuid = base.Uuid;
const WriteLayer = store_module.WriteLayer;
const testing = std.testing;
const gpa = testing.allocator;

const disk_size = 8 * block.block_size;
const base_id = idOf(1);
const written_id = idOf(2);

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    store: Store,

    /// Creates a base of zeros and a layer above it that owns block 1.
    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        const files = fixture.on.files();
        try Store.make(files, .{ .id = idOf(9), .seed = @splat(5) });
        fixture.store = try .open(gpa, files, .{ .cache_nodes = 16 });
        {
            var change = try fixture.store.lockForChange();
            defer change.end();
            try change.commit(&.{
                .store = fixture.store.id,
                .organization = .zero,
                .vdisk = idOf(8),
                .version = base_id,
                .parent = .zero,
                .number = 1,
                .incarnation = 0,
                .counter = try change.nextCounter(),
                .created_unix_ms = 0,
                .disk_size = disk_size,
                .root = .zeros,
            });
        }
        var below = try fixture.store.openVersion(base_id);
        defer below.close();
        var layer =
            try WriteLayer.create(gpa, files, layerName(), fixture.head(), below.reader.source());
        defer layer.close(gpa);
        try layer.write(&@as(block.Block, @splat('w')), block.block_size);
        const batch = try gpa.create(WriteLayer.Batch);
        defer gpa.destroy(batch);
        try layer.flush(batch);
    }

    fn head(fixture: *Fixture) store_module.layer_head.Head {
        _ = fixture;
        return .{
            .layer_id = idOf(7),
            .binding = .{
                .class = .maintenance,
                .device_id = idOf(6),
                .version_id = written_id,
                .version_root = block.Entry.zeros.hash,
                .disk_size = disk_size,
            },
            .limit_bytes = disk_size,
            .sequence = 1,
        };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(gpa);
        fixture.tmp.cleanup();
    }

    fn sealWith(fixture: *Fixture, boot: *Boot) !store_module.Manifest {
        return fixture.sealTelling(boot, null);
    }

    fn sealTelling(
        fixture: *Fixture,
        boot: *Boot,
        progress: ?seal.Progress,
    ) !store_module.Manifest {
        var change = try fixture.store.lockForChange();
        defer change.end();
        var parent = try fixture.store.openVersion(base_id);
        defer parent.close();
        return seal.seal(gpa, &change, &parent, &.{
            .version = written_id,
            .number = 2,
            .created_unix_ms = 0,
            .boot = .{ .context = boot, .find = Boot.find },
        }, progress);
    }
};

fn layerName() []const u8 {
    const Text = struct {
        var buffer: store_module.files.Name = undefined;
    };
    return store_module.pending_seal.layerDir(written_id, &Text.buffer);
}

const Boot = struct {
    is_there: bool,
    seen: [2]u8 = @splat(0),

    const kernel: store_module.manifest.BootFile = .{ .hash = @splat(3), .size = 4096 };

    fn find(
        context: *anyopaque,
        disk: *const BlockSource,
    ) error{ NoBoot, OutOfMemory }!seal.Boot.BootConfig {
        const boot: *Boot = @ptrCast(@alignCast(context));
        disk.read(&boot.seen, block.block_size - 1) catch return error.NoBoot;
        if (!boot.is_there) return error.NoBoot;
        return .{ .kernel = kernel, .initrd = null, .command_line = "quiet" };
    }
};

test "a seal reads the disk as it was written for what it boots with, and becomes a version" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var boot: Boot = .{ .is_there = true };
    const made = try fixture.sealWith(&boot);
    try testing.expectEqualStrings("\x00w", &boot.seen);
    try testing.expectEqual(Boot.kernel, made.kernel.?);
    try testing.expectEqualStrings("quiet", made.command_line.constSlice());
    const kept = try fixture.store.manifestOf(written_id);
    try testing.expectEqual(made.root, kept.root);
    try testing.expectEqual(null, try seal.nextLayer(fixture.on.files(), null));
    var version = try fixture.store.openVersion(written_id);
    defer version.close();
    var bytes: [2]u8 = undefined;
    try version.reader.source().read(&bytes, 2 * block.block_size - 1);
    try testing.expectEqualStrings("w\x00", &bytes);
}

test "a failed seal leaves the layer as it was: its device can write, and it can be sealed or discarded" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const files = fixture.on.files();
    var boot: Boot = .{ .is_there = false };
    try testing.expectError(error.NoBoot, fixture.sealWith(&boot));
    try testing.expectError(error.NotFound, fixture.store.manifestOf(written_id));
    try testing.expect((try seal.nextLayer(files, null)).?.eql(written_id));
    try testing.expectEqual(2 * block.block_size, (try seal.layerBytes(files, written_id)).?);
    {
        var below = try fixture.store.openVersion(base_id);
        defer below.close();
        var layer = try WriteLayer.open(
            gpa,
            files,
            layerName(),
            &fixture.head().binding,
            below.reader.source(),
        );
        defer layer.close(gpa);
        var byte: [1]u8 = undefined;
        try layer.read(&byte, block.block_size);
        try testing.expectEqualStrings("w", &byte);
        try testing.expectError(error.InUse, fixture.sealWith(&boot));
    }
    // An attempt that was killed left its data under another name.
    var names: [2]store_module.files.Name = undefined;
    const data = try std.mem.print(&names[0], "{s}/data", .{layerName()});
    const taken = try std.mem.print(&names[1], "{s}/sealed", .{layerName()});
    try files.rename(data, taken);
    try testing.expect(try seal.layerBytes(files, written_id) != null);
    try seal.removeLayer(files, written_id);
    try testing.expectEqual(null, try seal.nextLayer(files, null));
    try testing.expectError(error.NotFound, fixture.sealWith(&boot));
}

/// A running import needs a second file for its blocks while a layer is sealed.
const Importer = struct {
    set: *store_module.file_set.FileSet,
    made: ?store_module.file_set.FileSet.NewFile = null,
    is_canceled: bool = false,

    fn makeFile(context: *anyopaque, _: u64, _: u64) bool {
        const importer: *Importer = @ptrCast(@alignCast(context));
        if (importer.is_canceled) return false;
        const made = importer.set.make() catch return false;
        importer.set.files.write(made.handle, &@as(block.Block, @splat('i')), 0) catch return false;
        importer.made = made;
        return true;
    }
};

test "a file that an import creates while a layer is sealed still belongs to the import" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var boot: Boot = .{ .is_there = true };
    var importer: Importer = .{ .set = &fixture.store.data, .is_canceled = true };
    const progress: seal.Progress = .{ .context = &importer, .tell = Importer.makeFile };
    try testing.expectError(error.Cancelled, fixture.sealTelling(&boot, progress));
    try testing.expectEqual(0, try fixture.store.data.last());
    importer.is_canceled = false;
    _ = try fixture.sealTelling(&boot, progress);
    const made = importer.made.?;
    defer importer.set.files.close(made.handle);
    var byte: [1]u8 = undefined;
    try testing.expect(try fixture.store.data.read(.{ .file = made.file, .block = 0 }, 0, &byte));
    try testing.expectEqual('i', byte[0]);
    var version = try fixture.store.openVersion(written_id);
    defer version.close();
    try version.reader.source().read(&byte, block.block_size);
    try testing.expectEqual('w', byte[0]);
}
