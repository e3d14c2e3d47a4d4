//! The vDisk store on a disk that loses and tears, against a model that remembers what each sector of each version may be. The real
//! store, write layers and sealing run; a wrong byte, a version that is lost or half there, or a store that does not open after a
//! crash is a violation.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const SimFiles = @import("sim_files.zig");
const assert = std.debug.assert;

const block = store_module.block;
const Prng = base.Prng;
const Store = store_module.Store;
const Uuid = base.Uuid;
const WriteLayer = store_module.WriteLayer;

const StoreModel = @This();

pub const blocks = 4;
const sector_size = 512;
const sectors_per_block = block.block_size / sector_size;
const sectors = blocks * sectors_per_block;
const disk_size = blocks * block.block_size;
/// Beyond it the oldest go, so that a step costs the same all along.
const versions_max = 5;
/// Files of the simulated disk are never forgotten: a new disk begins after so many operations.
const operations_per_disk = 400;

pub const Error = error{ Violation, OutOfMemory };

/// What a sequence consists of; a block or a seed says where.
pub const Operation = union(enum) {
    write: u8,
    write_part: u8,
    discard: u8,
    flush,
    seal,
    merge,
    revert,
    crash,
};

const Version = struct {
    id: Uuid,
    content: [sectors]u64,
    /// Open as long as the process runs, as an edge that serves it has it; null: it was not read since the start.
    opened: ?*store_module.OpenVersion = null,
};

/// What each sector of the layer may hold: after a crash any of these, until then the last.
const Layer = struct {
    id: Uuid,
    possible: [sectors]std.ArrayList(u64),
    is_made: bool = false,
};

gpa: std.mem.Allocator,
prng: Prng,
sim: SimFiles,
store: Store,
versions: base.BoundedArray(Version, versions_max + 4) = .empty,
/// The version that the layer lies above.
below: usize = 0,
layer: Layer,
ids: u64 = 0,
stamps: u64 = 0,
operations: u64 = 0,
crashes: u64 = 0,
batch: WriteLayer.Batch = .{},
opened: Opened = undefined,
is_open: bool = false,
/// Of what goes on: a layer that may be gone after a crash, a version that may be there, one that may be gone.
is_removing: bool = false,
pending: ?Version = null,
leaving: ?Uuid = null,
/// What went wrong, for a person.
violation: []const u8 = "",

pub fn init(model: *StoreModel, gpa: std.mem.Allocator, seed: u64) Error!void {
    model.* = .{ .gpa = gpa, .prng = .init(seed), .sim = undefined, .store = undefined, .layer = undefined };
    try model.beginDisk();
}

pub fn deinit(model: *StoreModel) void {
    model.endDisk();
    model.* = undefined;
}

fn beginDisk(model: *StoreModel) Error!void {
    model.sim = try .init(model.gpa, model.prng.nextU64());
    const files = model.sim.files();
    Store.make(files, .{ .id = .fromRandom(@splat(1)), .seed = @splat(2) }) catch return model.fail("a store cannot be made");
    model.versions.clear();
    model.store = model.openStore() catch return model.fail("a store that was made does not open");
    model.below = 0;
    const first = model.nextId();
    model.commitEmpty(first) catch return model.fail("an empty version cannot be sealed");
    model.sim.syncAll();
    model.versions.appendAssumeCapacity(.{ .id = first, .content = @splat(0) });
    try model.newLayer();
}

fn endDisk(model: *StoreModel) void {
    model.closeLayer();
    model.closeVersions();
    model.forgetLayer();
    model.store.close(model.gpa);
    model.sim.deinit();
}

/// Does it, in the middle of it cuts the power if `cut` says so, and looks at every byte.
pub fn step(model: *StoreModel, operation: Operation, cut: bool) Error!void {
    model.operations += 1;
    if (model.operations % operations_per_disk == 0) {
        model.endDisk();
        try model.beginDisk();
    }
    if (cut) model.sim.stop_after = model.sim.operations + model.prng.below(30);
    const done = model.apply(operation);
    const is_cut = model.sim.operations >= model.sim.stop_after;
    model.sim.stop_after = std.math.maxInt(u64);
    if (is_cut or operation == .crash) return model.crash();
    done catch |err| return switch (err) {
        error.Violation, error.OutOfMemory => |own| own,
        else => model.fail(@errorName(err)),
    };
    try model.checkVersions();
    try model.checkLayer(.nothing);
}

pub fn random(model: *StoreModel) Error!void {
    const place: u8 = @intCast(model.prng.below(blocks));
    const operation: Operation = switch (model.prng.below(24)) {
        0...7 => .{ .write = place },
        8...12 => .{ .write_part = place },
        13...15 => .{ .discard = place },
        16...18 => .flush,
        19 => .seal,
        20 => .merge,
        21 => .revert,
        else => .crash,
    };
    try model.step(operation, model.prng.chance(1, 8));
}

const Failure = Error || store_module.seal.Error || store_module.merge.Error || WriteLayer.OpenError || WriteLayer.WriteError ||
    store_module.collect.Error || error{ Locked, RecordDamaged };

fn apply(model: *StoreModel, operation: Operation) Failure!void {
    try model.trim();
    switch (operation) {
        .write => |index| try model.write(@as(u64, index) * sectors_per_block, sectors_per_block),
        .write_part => |index| {
            const first = model.prng.below(sectors_per_block);
            const count = model.prng.between(1, sectors_per_block - first);
            try model.write(@as(u64, index) * sectors_per_block + first, count);
        },
        .discard => |index| try model.discard(index),
        .flush => try model.flush(),
        .seal => try model.seal(),
        .merge => try model.merge(),
        .revert => try model.revert(),
        .crash => {},
    }
}

fn openStore(model: *StoreModel) !Store {
    return Store.open(model.gpa, model.sim.files(), .{ .cache_nodes = 16, .file_size_max = 64 << 10 });
}

fn nextId(model: *StoreModel) Uuid {
    model.ids += 1;
    var bytes: [16]u8 = @splat(0);
    std.mem.writeInt(u64, bytes[8..], model.ids, .big);
    return .fromRandom(bytes);
}

fn commitEmpty(model: *StoreModel, id: Uuid) !void {
    var change = try model.store.lockForChange();
    defer change.end();
    try change.commit(&.{
        .store = model.store.id,
        .organization = .zero,
        .vdisk = .fromRandom(@splat(3)),
        .version = id,
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 0,
        .disk_size = disk_size,
        .root = .zeros,
    });
}

fn newLayer(model: *StoreModel) Error!void {
    model.layer = .{ .id = model.nextId(), .possible = @splat(.empty) };
    const content = &model.versions.slice()[model.below].content;
    for (&model.layer.possible, content) |*list, stamp| try list.append(model.gpa, stamp);
}

fn forgetLayer(model: *StoreModel) void {
    for (&model.layer.possible) |*list| list.deinit(model.gpa);
}

fn dirOf(id: Uuid, into: *store_module.files.Name) []const u8 {
    return std.mem.print(into, "layers/{f}", .{id}) catch unreachable;
}

/// The layer and what it lies above, as the edge has them open as long as the device runs.
const Opened = struct {
    version: store_module.OpenVersion,
    layer: WriteLayer,
};

fn openLayer(model: *StoreModel) Failure!*Opened {
    if (model.is_open) return &model.opened;
    var name: store_module.files.Name = undefined;
    const dir = dirOf(model.layer.id, &name);
    const opened = &model.opened;
    opened.version = try model.store.openVersion(model.versions.slice()[model.below].id);
    errdefer opened.version.close();
    const source = opened.version.reader.source();
    const binding: WriteLayer.Binding = .{
        .class = .maintenance,
        .device_id = .fromRandom(@splat(9)),
        .version_id = model.layer.id,
        .version_root = opened.version.manifest.root.hash,
        .disk_size = disk_size,
    };
    const files = model.sim.files();
    opened.layer = WriteLayer.open(model.gpa, files, dir, &binding, source) catch |err| blk: {
        if (err != error.NotFound or model.layer.is_made) return err;
        break :blk try WriteLayer.create(model.gpa, files, dir, .{
            .layer_id = model.layer.id,
            .binding = binding,
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, source);
    };
    model.layer.is_made = true;
    model.is_open = true;
    return opened;
}

fn closeLayer(model: *StoreModel) void {
    if (!model.is_open) return;
    model.opened.layer.close(model.gpa);
    model.opened.version.close();
    model.is_open = false;
}

fn write(model: *StoreModel, first: u64, count: u64) Failure!void {
    const opened = try model.openLayer();
    var bytes: [block.block_size]u8 align(8) = undefined;
    model.stamps += 1;
    // Now and then zeros, which are kept as a hole.
    const stamp = if (model.prng.chance(1, 8)) 0 else model.stamps;
    const part = bytes[0..@intCast(count * sector_size)];
    @memset(std.mem.bytesAsSlice(u64, part), stamp);
    for (first..first + count) |sector| try model.layer.possible[sector].append(model.gpa, stamp);
    try opened.layer.write(part, first * sector_size);
}

fn discard(model: *StoreModel, index: u8) Failure!void {
    const opened = try model.openLayer();
    const first = @as(u64, index) * sectors_per_block;
    for (first..first + sectors_per_block) |sector| try model.layer.possible[sector].append(model.gpa, 0);
    try opened.layer.discard(first * sector_size, block.block_size);
}

fn flush(model: *StoreModel) Failure!void {
    const opened = try model.openLayer();
    try opened.layer.flush(&model.batch);
    model.settle();
}

fn settle(model: *StoreModel) void {
    for (&model.layer.possible) |*list| {
        list.items[0] = list.getLast();
        list.shrinkRetainingCapacity(1);
    }
}

fn seal(model: *StoreModel) Failure!void {
    try model.flush();
    model.closeLayer();
    try model.sealLayer();
}

/// Of a layer that was flushed.
fn sealLayer(model: *StoreModel) Failure!void {
    var sealed: Version = .{ .id = model.layer.id, .content = undefined };
    for (&sealed.content, &model.layer.possible) |*stamp, *list| stamp.* = list.items[0];
    {
        var change = try model.store.lockForChange();
        defer change.end();
        var parent = try model.store.openVersion(model.versions.slice()[model.below].id);
        defer parent.close();
        _ = try store_module.seal.seal(model.gpa, &change, &parent, &.{
            .version = sealed.id,
            .number = 1,
            .created_unix_ms = 0,
            .kernel = null,
            .initrd = null,
            .command_line = "",
        }, null);
    }
    try model.adopt(sealed);
}

/// A version is there, and the next layer lies above it.
fn adopt(model: *StoreModel, version: Version) Error!void {
    model.versions.appendAssumeCapacity(version);
    model.below = model.versions.count - 1;
    model.forgetLayer();
    try model.newLayer();
}

fn merge(model: *StoreModel) Failure!void {
    const newest = model.versions.slice()[model.versions.count - 1];
    const made: Version = .{ .id = model.nextId(), .content = newest.content };
    var change = try model.store.lockForChange();
    defer change.end();
    model.pending = made;
    try store_module.merge.merge(&change, .{
        .of = newest.id,
        .onto = null,
        .version = made.id,
        .number = 1,
        .created_unix_ms = 0,
    });
    model.pending = null;
    model.versions.appendAssumeCapacity(made);
}

/// The oldest that the layer does not lie above go, and their blocks with them.
fn trim(model: *StoreModel) Failure!void {
    if (model.versions.count <= versions_max) return;
    var change = try model.store.lockForChange();
    defer change.end();
    while (model.versions.count > versions_max) {
        const oldest: usize = if (model.below == 0) 1 else 0;
        model.closeVersion(&model.versions.slice()[oldest]);
        model.leaving = model.versions.slice()[oldest].id;
        try change.delete(model.leaving.?);
        model.removeVersion(oldest);
        model.leaving = null;
    }
    var collection: store_module.collect.Collection = try .begin(model.gpa, &change);
    defer collection.end();
    while (try collection.step(32 << 10)) {}
}

fn removeVersion(model: *StoreModel, index: usize) void {
    const items = model.versions.slice();
    std.mem.copyForwards(Version, items[index..], items[index + 1 ..]);
    model.versions.count -= 1;
    if (model.below > index) model.below -= 1;
}

fn revert(model: *StoreModel) Failure!void {
    var name: store_module.files.Name = undefined;
    model.closeLayer();
    model.is_removing = true;
    if (model.layer.is_made) try WriteLayer.remove(model.sim.files(), dirOf(model.layer.id, &name));
    model.is_removing = false;
    model.below = @intCast(model.prng.below(model.versions.count));
    model.forgetLayer();
    try model.newLayer();
}

/// Power is cut; everything opens again and is what it may be.
fn crash(model: *StoreModel) Error!void {
    model.crashes += 1;
    model.closeLayer();
    model.closeVersions();
    model.store.close(model.gpa);
    model.sim.crash();
    model.store = model.openStore() catch return model.fail("the store does not open after a crash");
    {
        // Finishes what was cut off.
        var change = model.store.lockForChange() catch return model.fail("the store cannot be changed after a crash");
        change.end();
    }
    if (model.pending) |made| if (model.isThere(made.id)) model.versions.appendAssumeCapacity(made);
    model.pending = null;
    if (model.leaving) |id| if (!model.isThere(id)) for (model.versions.slice(), 0..) |*version, index| {
        if (!version.id.eql(id)) continue;
        model.removeVersion(index);
        break;
    };
    model.leaving = null;
    try model.checkVersions();
    if (model.isThere(model.layer.id)) {
        // It was sealed when the power went: what was flushed before is what it has.
        var sealed: Version = .{ .id = model.layer.id, .content = undefined };
        for (&sealed.content, &model.layer.possible) |*stamp, *list| {
            if (list.items.len != 1) return model.fail("a version was sealed of what was not flushed");
            stamp.* = list.items[0];
        }
        try model.checkContent(&sealed);
        return model.adopt(sealed);
    }
    try model.checkLayer(.crash);
}

fn isThere(model: *StoreModel, id: Uuid) bool {
    _ = model.store.manifestOf(id) catch return false;
    return true;
}

fn checkVersions(model: *StoreModel) Error!void {
    for (model.versions.slice()) |*version| try model.checkContent(version);
}

fn checkContent(model: *StoreModel, version: *Version) Error!void {
    if (version.opened == null) {
        const opened = try model.gpa.create(store_module.OpenVersion);
        opened.* = model.store.openVersion(version.id) catch {
            model.gpa.destroy(opened);
            return model.fail("a version does not open");
        };
        version.opened = opened;
    }
    var bytes: [disk_size]u8 align(8) = undefined;
    version.opened.?.reader.source().read(&bytes, 0) catch return model.fail("a version cannot be read");
    for (version.content, 0..) |stamp, sector| {
        if (!isStamped(bytes[sector * sector_size ..][0..sector_size], stamp)) return model.fail("a byte of a version is wrong");
    }
}

fn closeVersions(model: *StoreModel) void {
    for (model.versions.slice()) |*version| model.closeVersion(version);
}

fn closeVersion(model: *StoreModel, version: *Version) void {
    const opened = version.opened orelse return;
    opened.close();
    model.gpa.destroy(opened);
    version.opened = null;
}

fn checkLayer(model: *StoreModel, after: enum { crash, nothing }) Error!void {
    if (!model.layer.is_made and after == .nothing) return;
    const is_removing = model.is_removing;
    model.is_removing = false;
    const opened = model.openLayer() catch |err| switch (err) {
        // Sealing had begun: it goes on, and the version is what was flushed.
        error.Lost => return if (after == .crash) model.sealAgain() else model.fail("the layer is lost"),
        error.NotFound => {
            if (!is_removing) return model.fail("the layer is gone");
            model.forgetLayer();
            return model.newLayer();
        },
        error.OutOfMemory => return error.OutOfMemory,
        else => return model.fail(@errorName(err)),
    };
    var bytes: [disk_size]u8 align(8) = undefined;
    opened.layer.read(&bytes, 0) catch return model.fail("the layer cannot be read");
    for (&model.layer.possible, 0..) |*list, sector| {
        const part = bytes[sector * sector_size ..][0..sector_size];
        const found = std.mem.readInt(u64, part[0..8], .little);
        if (!isStamped(part, found)) return model.fail("a sector of the layer is torn");
        switch (after) {
            .nothing => if (found != list.getLast()) return model.fail("a byte of the layer is wrong"),
            .crash => {
                if (std.mem.findScalar(u64, list.items, found) == null) return model.fail("a write that was flushed is lost");
                list.items[0] = found;
                list.shrinkRetainingCapacity(1);
            },
        }
    }
}

fn sealAgain(model: *StoreModel) Error!void {
    for (&model.layer.possible) |*list| if (list.items.len != 1) return model.fail("the layer is lost and was not flushed");
    model.sealLayer() catch |err| return switch (err) {
        error.Violation, error.OutOfMemory => |own| own,
        else => model.fail(@errorName(err)),
    };
}

fn isStamped(bytes: *const [sector_size]u8, stamp: u64) bool {
    for (0..sector_size / 8) |word| if (std.mem.readInt(u64, bytes[word * 8 ..][0..8], .little) != stamp) return false;
    return true;
}

fn fail(model: *StoreModel, what: []const u8) Error {
    model.violation = what;
    return error.Violation;
}
