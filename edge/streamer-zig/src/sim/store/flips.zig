//! Flips every single bit of a store, one after the other: each must be found before a byte is
//! delivered. Each check reads as if the process had just started.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const lz4 = @import("codec").lz4;
const SimFiles = @import("../kit/sim_files.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Store = store_module.Store;
const Uuid = base.Uuid;
const unit = store_module.unit;
const LayerSums = store_module.LayerSums;
const WriteLayer = store_module.WriteLayer;

pub const StoreFlips = @This();

const disk_size = 4 * block.block_size;

pub const Part = enum {
    manifest,
    node,
    extent,
    /// Read by sectors, as boot firmware does.
    extent_in_parts,
    /// The header and the packed bytes of a unit.
    unit,
    unit_in_parts,
    store_head,
    store_key,
    layer_head,
    layer_map,
    layer_end,
    layer_block,
    layer_sums,
    /// What an entry says of its block: the rest of it is a generation.
    layer_sum,
    seal_record,
    import_checkpoint,
};

pub const Result = struct {
    flips: std.EnumArray(Part, u32) = .initFill(0),
    /// A bit that was not found; null if all were.
    missed: ?struct { part: Part, bit: u64 } = null,

    pub fn total(result: *const Result) u64 {
        var sum: u64 = 0;
        for (std.enums.values(Part)) |part| sum += result.flips.get(part);
        return sum;
    }
};

const FileRange = struct {
    name: store_module.files.Name,
    name_size: usize,
    offset: u64 = 0,
    size: u64,
};

gpa: std.mem.Allocator,
sim: SimFiles,
store: Store,
version: store_module.OpenVersion,
/// Has the same blocks, packed.
packed_version: store_module.OpenVersion,

pub fn run(gpa: std.mem.Allocator) !Result {
    var flips: StoreFlips = undefined;
    try flips.init(gpa);
    defer flips.deinit();
    var result: Result = .{};
    for (std.enums.values(Part)) |part| {
        const place = try flips.placeOf(part);
        const name = place.name[0..place.name_size];
        if (!flips.isGood(part)) return error.DamagedFromTheBegin;
        for (0..@intCast(place.size * 8)) |bit| {
            const at, const of_byte = .{ place.offset + bit / 8, @as(u3, @intCast(bit % 8)) };
            flips.sim.flipBit(name, at, of_byte);
            const is_found = !flips.isGood(part);
            flips.sim.flipBit(name, at, of_byte);
            if (!is_found) {
                result.missed = .{ .part = part, .bit = bit };
                return result;
            }
            result.flips.getPtr(part).* += 1;
        }
        if (!flips.isGood(part)) return error.DamagedByAFlip;
    }
    return result;
}

fn init(flips: *StoreFlips, gpa: std.mem.Allocator) !void {
    flips.gpa = gpa;
    flips.sim = try .init(gpa, 1);
    const files = flips.sim.files();
    try Store.make(files, .{ .id = idOf(1), .seed = @splat(2) });
    flips.store = try .open(gpa, files, .{ .cache_nodes = 16 });
    try flips.commitEmpty();
    try flips.writeLayer(idOf(5), .maintenance);
    try flips.seal(idOf(5));
    try flips.writeLayer(idOf(6), .edge_persistent);
    try flips.writeCheckpoint();
    try flips.commitPacked();
    flips.version = try flips.store.openVersion(idOf(5));
    flips.packed_version = try flips.store.openVersion(idOf(10));
    var bytes: [disk_size]u8 = undefined;
    try flips.version.reader.source().read(&bytes, 0);
    if (!std.mem.eql(u8, &bytes, &contents)) return error.DamagedFromTheBegin;
    // A seal interrupted after its record was written.
    try flips.writeLayer(idOf(7), .maintenance);
    var calls: u64 = 0;
    while (try flips.sizeOf("sealing") == null) {
        calls += 1;
        flips.sim.stop_after = flips.sim.operations + calls;
        flips.seal(idOf(7)) catch |err| if (err != error.DiskFailed) return err;
    }
    flips.sim.stop_after = std.math.maxInt(u64);
}

fn deinit(flips: *StoreFlips) void {
    flips.version.close();
    flips.packed_version.close();
    flips.store.close(flips.gpa);
    flips.sim.deinit();
}

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

fn commitEmpty(flips: *StoreFlips) !void {
    var change = try flips.store.lockForChange();
    defer change.end();
    try change.commit(&.{
        .store = flips.store.id,
        .organization = .zero,
        .vdisk = idOf(3),
        .version = idOf(4),
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 0,
        .disk_size = disk_size,
        .root = .zeros,
    });
}

/// A version whose four blocks are one unit.
fn commitPacked(flips: *StoreFlips) !void {
    const store = &flips.store;
    var change = try store.lockForChange();
    defer change.end();
    try change.allowUnits();
    var data: Appender = try .init(flips.gpa, &store.data, 1 << 20);
    defer data.deinit(flips.gpa);
    var nodes: Appender = try .init(flips.gpa, &store.nodes, 1 << 20);
    defer nodes.deinit(flips.gpa);
    const table = try flips.gpa.create(lz4.Table);
    defer flips.gpa.destroy(table);
    var stored: unit.Stored = undefined;
    const bytes = unit.pack(.{ .quick = table }, &stored, &contents) orelse return error.NotPacked;
    const place = try data.appendUnit(bytes);
    var builder: store_module.TreeBuilder = .init(&store.cache, &nodes, .zeros, 4);
    for (0..4) |index| try builder.put(index, .{
        .hash = block.hashOf(contents[index * block.block_size ..][0..block.block_size]),
        .location = unit.locationOf(place.file, place.sector, bytes.len, 4, index),
    });
    const root = try builder.finish();
    try data.sync();
    try nodes.sync();
    var made = try store.manifestOf(idOf(4));
    made.version = idOf(10);
    made.counter = try change.nextCounter();
    made.root = root;
    made.has_units = true;
    try change.commit(&made);
}

fn bindingOf(version: Uuid, class: WriteLayer.Class) WriteLayer.Binding {
    return .{ .class = class, .device_id = idOf(9), .version_id = version, .disk_size = disk_size };
}

fn dirOf(id: Uuid, into: *store_module.files.Name) []const u8 {
    return std.mem.print(into, "layers/{f}", .{id}) catch unreachable;
}

/// All four blocks, above the empty version.
fn writeLayer(flips: *StoreFlips, id: Uuid, class: WriteLayer.Class) !void {
    var below = try flips.store.openVersion(idOf(4));
    defer below.close();
    const batch = try flips.gpa.create(WriteLayer.Batch);
    defer flips.gpa.destroy(batch);
    var name: store_module.files.Name = undefined;
    var layer = try WriteLayer.create(flips.gpa, flips.sim.files(), dirOf(id, &name), .{
        .layer_id = id,
        .binding = bindingOf(id, class),
        .limit_bytes = disk_size,
        .sequence = 0,
    }, below.reader.source());
    defer layer.close(flips.gpa);
    try layer.write(&contents, 0);
    try layer.flush(batch);
    layer.settle(batch);
}

const contents: [disk_size]u8 = blk: {
    var bytes: [disk_size]u8 = undefined;
    @setEvalBranchQuota(disk_size * 2);
    for (&bytes, 0..) |*byte, at| byte.* = @truncate(at / 512 + 1);
    break :blk bytes;
};

fn seal(flips: *StoreFlips, id: Uuid) !void {
    var change = try flips.store.lockForChange();
    defer change.end();
    var parent = try flips.store.openVersion(idOf(4));
    defer parent.close();
    const wanted: store_module.seal.Request = .{ .version = id, .number = 2, .created_unix_ms = 0 };
    _ = try store_module.seal.seal(flips.gpa, &change, &parent, &wanted, null);
}

fn writeCheckpoint(flips: *StoreFlips) !void {
    const checkpoint: Checkpoint = .{
        .version = idOf(8),
        .vdisk = idOf(3),
        .parent = .zero,
        .number = 1,
        .stamp = .{ .kind = .file, .device = 1, .inode = 2, .modified_ns = 3 },
        .source_size = disk_size,
        .pad = false,
        .root_level = 0,
    };
    try checkpoint.write(flips.sim.files());
}

fn sizeOf(flips: *StoreFlips, name: []const u8) !?u64 {
    const before = flips.sim.stop_after;
    defer flips.sim.stop_after = before;
    flips.sim.stop_after = std.math.maxInt(u64);
    const files = flips.sim.files();
    const handle = files.open(name, .read) catch |err|
        return if (err == error.NotFound) null else err;
    defer files.close(handle);
    return try files.size(handle);
}

const NamedRange = struct { []const u8, u64, ?u64 };

/// The header and the packed bytes of the unit.
fn unitPlace(flips: *StoreFlips, name: *store_module.files.Name) !NamedRange {
    const location = (try flips.packed_version.reader.entryOf(2)).location;
    var head: [2]u8 = undefined;
    if (!try flips.store.data.read(location, 0, &head)) return error.Short;
    return .{
        flips.store.data.nameOf(location.file, name),
        location.offset(),
        unit.header_size + @as(u64, std.mem.readInt(u16, &head, .little)),
    };
}

fn placeOf(flips: *StoreFlips, part: Part) !FileRange {
    var name: store_module.files.Name = undefined;
    const root = flips.version.manifest.root;
    const of_file: NamedRange = switch (part) {
        .manifest => .{ store_module.manifest.fileName(idOf(5), &name), 0, null },
        .node => .{
            flips.store.nodes.nameOf(root.location.file, &name),
            root.location.offset(),
            block.block_size,
        },
        .extent, .extent_in_parts => blk: {
            const entry = try flips.version.reader.entryOf(2);
            break :blk .{
                flips.store.data.nameOf(entry.location.file, &name),
                entry.location.offset(),
                block.block_size,
            };
        },
        .unit, .unit_in_parts => try flips.unitPlace(&name),
        .store_head => .{ "bootfarm-store", 0, null },
        .store_key => .{ "store-key", 0, null },
        .layer_head => .{
            std.mem.print(&name, "layers/{f}/head", .{idOf(6)}) catch unreachable,
            0,
            null,
        },
        .layer_map => .{
            std.mem.print(&name, "layers/{f}/map", .{idOf(6)}) catch unreachable,
            0,
            null,
        },
        .layer_end => .{
            std.mem.print(&name, "layers/{f}/data", .{idOf(6)}) catch unreachable,
            disk_size,
            block.block_size,
        },
        .layer_block => .{
            std.mem.print(&name, "layers/{f}/data", .{idOf(6)}) catch unreachable,
            block.block_size,
            block.block_size,
        },
        .layer_sums => .{
            std.mem.print(&name, "layers/{f}/sums", .{idOf(6)}) catch unreachable,
            0,
            LayerSums.head_bytes,
        },
        .layer_sum => .{
            std.mem.print(&name, "layers/{f}/sums", .{idOf(6)}) catch unreachable,
            block.block_size + 2,
            6,
        },
        .seal_record => .{ "sealing", 0, null },
        .import_checkpoint => .{
            std.mem.print(&name, "imports/{f}", .{idOf(8)}) catch unreachable,
            0,
            null,
        },
    };
    const found, const offset, const size = of_file;
    var place: FileRange = .{
        .name = undefined,
        .name_size = found.len,
        .offset = offset,
        .size = size orelse (try flips.sizeOf(found)).?,
    };
    @memcpy(place.name[0..found.len], found);
    return place;
}

/// Whether data that depends on this part is delivered; false means an error.
fn isGood(flips: *StoreFlips, part: Part) bool {
    flips.use(part) catch return false;
    return true;
}

fn use(flips: *StoreFlips, part: Part) !void {
    const files = flips.sim.files();
    flips.store.cache.clear();
    flips.store.units.clear();
    switch (part) {
        .manifest => {
            var version = try flips.store.openVersion(idOf(5));
            version.close();
        },
        .node, .extent => try readAll(&flips.version, block.block_size),
        .extent_in_parts => try readAll(&flips.version, 512),
        .unit => try readAll(&flips.packed_version, block.block_size),
        .unit_in_parts => try readAll(&flips.packed_version, 512),
        .store_head => {
            var again: Store = try .open(flips.gpa, files, .{ .cache_nodes = 16 });
            again.close(flips.gpa);
        },
        .store_key => {
            var change: store_module.store_dir.Change = .{
                .store = &flips.store,
                .lock = undefined,
            };
            _ = try change.key();
        },
        .layer_head, .layer_map, .layer_end => {
            var name: store_module.files.Name = undefined;
            const below: store_module.BlockSource = .{
                .context = undefined,
                .vtable = undefined,
                .size = disk_size,
            };
            const binding = bindingOf(idOf(6), .edge_persistent);
            var layer: WriteLayer = try .open(
                flips.gpa,
                files,
                dirOf(idOf(6), &name),
                &binding,
                below,
            );
            defer layer.close(flips.gpa);
            const batch = try flips.gpa.create(WriteLayer.Batch);
            defer flips.gpa.destroy(batch);
            // Parts that follow are judged as after an orderly end.
            layer.settle(batch);
        },
        .layer_block, .layer_sums, .layer_sum => try flips.judgeLayer(),
        .seal_record => {
            // A store that trusts the record would start to finish it.
            flips.sim.fail_at = flips.sim.operations;
            store_module.pending_seal.recover(files) catch |err| if (err != error.DiskFailed) return err;
        },
        .import_checkpoint => _ = try Checkpoint.read(files, idOf(8)),
    }
}

/// As sealing reads a layer, which changes nothing in it.
fn judgeLayer(flips: *StoreFlips) !void {
    const files = flips.sim.files();
    var buffer: store_module.files.Name = undefined;
    var name: store_module.files.Name = undefined;
    const dir = dirOf(idOf(6), &buffer);
    const sums_name = std.mem.print(&name, "{s}/sums", .{dir}) catch unreachable;
    const sums: LayerSums = try .load(
        files,
        try files.open(sums_name, .read),
        idOf(6),
        disk_size,
    );
    defer files.close(sums.handle);
    const data_name = std.mem.print(&name, "{s}/data", .{dir}) catch unreachable;
    const data = try files.open(data_name, .read);
    defer files.close(data);
    var bytes: [disk_size]u8 = undefined;
    if (!try files.readWhole(data, &bytes, 0)) return error.Short;
    if (try sums.judge(files, 0, &bytes, .waiting) != .ok) return error.Rotten;
}

fn readAll(version: *store_module.OpenVersion, comptime piece: usize) !void {
    const source = version.reader.source();
    var offset: u64 = 2 * block.block_size;
    var bytes: [piece]u8 = undefined;
    while (offset < 3 * block.block_size) : (offset += piece) {
        try source.read(&bytes, offset);
    }
}
