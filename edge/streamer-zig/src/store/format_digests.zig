//! The bytes that the store writes are those of format 1, and of 2 in a checkpoint: a store of an
//! earlier release stays readable, and its vDisks can be moved between edges. A digest changes only
//! with a new format.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const block = store_module.block;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const LinuxFiles = store_module.LinuxFiles;
const Node = store_module.node.Node;
const Sha256 = base.Sha256;
const Store = store_module.Store;
const Uuid = base.Uuid;
const WriteLayer = store_module.WriteLayer;
const testing = std.testing;

fn expectDigest(expected: *const [64]u8, bytes: []const u8) !void {
    var digest: [Sha256.digest_length]u8 = undefined;
    Sha256.hash(bytes, &digest, .{});
    try testing.expectEqualStrings(expected, &std.fmt.bytesToHex(digest, .lower));
}

fn expectFile(
    files: store_module.Files,
    name: []const u8,
    size: u64,
    expected: *const [64]u8,
) !void {
    const handle = try files.open(name, .read);
    defer files.close(handle);
    try testing.expectEqual(size, try files.size(handle));
    const bytes = try testing.allocator.alloc(u8, @intCast(size));
    defer testing.allocator.free(bytes);
    try testing.expect(try files.readWhole(handle, bytes, 0));
    try expectDigest(expected, bytes);
}

const manifest: store_module.Manifest = .{
    .store = .fromRandom(@splat(1)),
    .organization = .fromRandom(@splat(2)),
    .vdisk = .fromRandom(@splat(3)),
    .version = .fromRandom(@splat(4)),
    .parent = .fromRandom(@splat(5)),
    .number = 0x0607_0809,
    .incarnation = 10,
    .counter = 11,
    .created_unix_ms = 1_700_000_000_000,
    .disk_size = 12 << 30,
    .root = .{ .hash = @splat(13), .location = .{ .file = 14, .block = 15 } },
    .kernel = .{ .hash = @splat(16), .size = 17 },
    .initrd = .{ .hash = @splat(18), .size = 19 },
    .command_line = textOf(store_module.manifest.command_line_size_max, "quiet splash"),
    .name = textOf(store_module.manifest.name_size_max, "Windows 11"),
};

fn textOf(comptime most: u16, comptime text: []const u8) base.BoundedArray(u8, most) {
    return base.BoundedArray(u8, most).fromSlice(text) catch unreachable;
}

test "a manifest has the bytes of format 1" {
    const key = try base.Ed25519.KeyPair.generateDeterministic(@splat(1));
    const bytes = store_module.manifest.encode(&manifest, key);
    try expectDigest("0ecea3af18918ac3f53049bbcf41d19a898ada02815315189a2e2a5e2ad6d5c9", &bytes);
    const found = try store_module.manifest.decode(&bytes, key.public_key);
    try testing.expectEqualDeep(manifest.initrd, found.initrd);
    try testing.expectEqualStrings("Windows 11", found.name.constSlice());
    try testing.expectEqual(manifest.created_unix_ms, found.created_unix_ms);
    try testing.expect(!found.isBase());
    var name: store_module.files.Name = undefined;
    try testing.expectEqualStrings(
        "versions/04040404-0404-4404-8404-040404040404.manifest",
        store_module.manifest.fileName(manifest.version, &name),
    );
}

test "a node has the bytes and the hash of format 1" {
    var node: Node = .empty(2);
    for (0..store_module.node.fanout) |index| if (index % 3 != 1) node.set(index, .{
        .hash = @splat(@intCast(index + 1)),
        .location = .{ .file = 7, .block = @intCast(index << 30) },
    });
    node.seal();
    try expectDigest(
        "0a3199ea7557fa87c9930b1919ed2f602f43cb291ac66ab5671278e2f095669d",
        std.mem.asBytes(&node),
    );
    try expectDigest(
        "ac43eb7eac994de19a8fef62dab026d30da131145a860050935acfbfd3e50117",
        &node.hash(),
    );
}

test "the head of a layer has the bytes of formats 1 and 2" {
    var head: store_module.layer_head.Head = .{
        .layer_id = .fromRandom(@splat(1)),
        .binding = .{
            .class = .private,
            .device_id = .fromRandom(@splat(2)),
            .version_id = .fromRandom(@splat(3)),
            .version_root = @splat(4),
            .disk_size = 5 << 30,
        },
        .limit_bytes = 6 << 20,
        .sequence = 7,
    };
    for ([_]bool{ false, true }, [_]*const [64]u8{
        "d56eb6d66c989a7c668cd70e864412bc45a65bf5455d9c0238080cd24576004a",
        "f30ff1bb184f4490b922f313b8ebd3787f750a60c3778f82c3827357c10be2a8",
    }) |has_sums, digest| {
        head.has_sums = has_sums;
        try expectDigest(digest, &store_module.layer_head.emit(&head));
    }
}

test "a seal record has the bytes of format 1" {
    const record: store_module.pending_seal.Record = .{
        .file = 0x01_02_03,
        .version = .fromRandom(@splat(4)),
        .manifest = @splat(5),
    };
    try expectDigest(
        "691050666d244076048b9bf22dfc0bdffc142db06d6eaf4771f7fd79578c704a",
        &record.encode(),
    );
}

test "the files of a new store have the bytes of format 1" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try Store.make(files, .{
        .id = .fromRandom(@splat(1)),
        .organization = .fromRandom(@splat(2)),
        .seed = @splat(3),
    });
    try expectFile(
        files,
        "bootfarm-store",
        108,
        "91a10f4f23ec4ed6a3bbe9235d51de244063f3ee06a76e96b072af52ad3244bc",
    );
    try expectFile(
        files,
        "store-key",
        64,
        "51077427c1f91423624ae355a2ae49f3665eb2ad134487a7c27f3c0202bd55d4",
    );
    try store_module.counter_file.write(files, 0x0102_0304_0506_0708);
    try expectFile(
        files,
        "counter",
        48,
        "6948f7b71e94d8fd98ce888c1ef2604fa3703681736d674d58830eb51ccb297b",
    );
    const checkpoint: Checkpoint = .{
        .version = .fromRandom(@splat(1)),
        .vdisk = .fromRandom(@splat(2)),
        .parent = .fromRandom(@splat(3)),
        .number = 4,
        .kernel = .{ .hash = @splat(5), .size = 6 },
        .initrd = .{ .hash = @splat(7), .size = 8 },
        .command_line = textOf(store_module.manifest.command_line_size_max, "quiet splash"),
        .name = textOf(store_module.manifest.name_size_max, "Windows 11"),
        .path = textOf(store_module.image_source.path_size_max, "/dev/sdb"),
        .stamp = .{ .kind = .block_device, .device = 9, .inode = 10, .modified_ns = 11 },
        .source_size = 12 << 30,
        .pad = true,
        .position = 13 << 20,
        .root = .{ .hash = @splat(14), .location = .{ .file = 15, .block = 16 } },
        .root_level = 3,
        .data_from = .{ .file = 17, .block = 18 },
        .nodes_from = .{ .file = 19, .block = 20 },
    };
    try checkpoint.write(files);
    try expectFile(
        files,
        "imports/01010101-0101-4101-8101-010101010101",
        4096,
        "438c1491a95874f6ea9029e0f584066062419c182b199f35459f0542b5547cc2",
    );
    const found = try Checkpoint.read(files, checkpoint.version);
    inline for (@typeInfo(Checkpoint).@"struct".field_names) |name| {
        const Field = @FieldType(Checkpoint, name);
        if (@typeInfo(Field) == .@"struct" and @hasDecl(Field, "constSlice")) {
            try testing.expectEqualStrings(
                @field(checkpoint, name).constSlice(),
                @field(found, name).constSlice(),
            );
        } else try testing.expectEqualDeep(@field(checkpoint, name), @field(found, name));
    }
}

const LayerBelow = struct {
    fn read(_: *anyopaque, buffer: []u8, _: u64) store_module.block_source.ReadError!void {
        @memset(buffer, 'b');
    }
};

test "the files of a layer have the bytes of format 2" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try files.makeDir("layers");
    // Two records of the map, and a disk that ends within a block.
    const record_blocks = 4032;
    const disk_size = (record_blocks + 1) * block.block_size + 512;
    const below: store_module.BlockSource = .{
        .context = &on,
        .vtable = &.{ .read = LayerBelow.read },
        .size = disk_size,
    };
    var layer: WriteLayer = try .create(testing.allocator, files, "layers/one", .{
        .layer_id = .fromRandom(@splat(1)),
        .binding = .{
            .class = .edge_persistent,
            .device_id = .fromRandom(@splat(2)),
            .version_id = .fromRandom(@splat(3)),
            .disk_size = disk_size,
        },
        .limit_bytes = disk_size,
        .sequence = 4,
    }, below);
    defer layer.close(testing.allocator);
    try layer.write(&@as([512]u8, @splat('w')), 512);
    try layer.write(&@as([512]u8, @splat('w')), (record_blocks - 1) * block.block_size);
    try layer.discard(record_blocks * block.block_size, block.block_size);
    const batch = try testing.allocator.create(WriteLayer.Batch);
    defer testing.allocator.destroy(batch);
    try layer.flush(batch);
    try expectFile(
        files,
        "layers/one/head",
        512,
        "1ea3c3f4b998c30e78e1f76f9190a72db4e090eee2876714e6869df4f7c7c3f7",
    );
    try expectFile(
        files,
        "layers/one/map",
        1024,
        "dae2623647e2604142941fb1991de02d80bc47fb6d65c0e78c3245a110c9b5d9",
    );
    // The head, and an entry for each block.
    try expectFile(
        files,
        "layers/one/sums",
        block.block_size + (record_blocks + 2) * 8,
        "7d7228bb88082139bf4e631017ae1ebed963b0c46010e04cd254c077ec8dcc42",
    );
    // The blocks, the rest of the last one, and the trailer.
    try expectFile(
        files,
        "layers/one/data",
        (record_blocks + 3) * block.block_size,
        "84b932fb17162996ae4b438d7ac29d77d37edc5c4fc459e6c5f73cc64ae99415",
    );
}
