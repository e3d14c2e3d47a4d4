//! Simulates the vDisk store on a disk that loses and tears writes, against a model of what each
//! sector of each version and each device's layer may hold. It drives the real store, write layers,
//! sealing, merging, import and garbage collection. Violations: a wrong byte, a lost acknowledged
//! write, a lost or partial version, a missing refusal, or a store that does not open.
//!
//! Four blocks of a disk are written: side by side, or so far apart that the tree has two levels.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const SimFiles = @import("../kit/sim_files.zig");
const StoreDevice = @import("device.zig");
const DeviceSnapshot = @import("snapshot.zig");
const store_checks = @import("checks.zig");
const store_import = @import("import.zig");
const store_operation = @import("operation.zig");
const store_repair = @import("repair.zig");
const store_restart = @import("restart.zig");
const store_stamps = @import("stamps.zig");
const assert = std.debug.assert;

const block = store_module.block;
const BoundedArray = base.BoundedArray;
const Content = StoreDevice.Content;
const Prng = base.Prng;
const Store = store_module.Store;
const Uuid = base.Uuid;
const WriteLayer = store_module.WriteLayer;
const blocks = StoreDevice.blocks;
const sector_size = StoreDevice.sector_size;
const sectors = StoreDevice.sectors;
const sectors_per_block = StoreDevice.sectors_per_block;

pub const StoreModel = @This();

/// The oldest versions are deleted beyond this, so that the cost of a step is constant.
const versions_max = 6;

/// The most of a snapshot that nothing else comes between.
const snapshot_rounds_max = 4;
/// Where the file of a snapshot is imported.
const snapshot_dir = "snapshot-check";

/// `Stopped`: interrupted in the middle, as planned.
pub const Error = error{ Violation, OutOfMemory, Stopped };

pub const Geometry = store_operation.Geometry;
pub const Operation = store_operation.Operation;
pub const Kind = store_operation.Kind;
const Cut = store_operation.Cut;
const Range = store_operation.Range;
const LayerKind = store_operation.LayerKind;

pub const Version = struct {
    id: Uuid,
    content: Content,
    /// Counter of its manifest, as returned when it was made.
    counter: u64 = 0,
    /// Open as long as the process runs, like in an edge that serves it; null if it was not read
    /// since the start.
    opened: ?*store_module.OpenVersion = null,
};

pub const Counts = struct {
    operations: std.EnumArray(Kind, u64) = .initFill(0),
    /// Operations of these that were interrupted.
    cut: std.EnumArray(Kind, u64) = .initFill(0),
    power_cuts: u64 = 0,
    kills: u64 = 0,
    /// Recoveries that were interrupted themselves.
    restarts_cut: u64 = 0,
    fleeting_lost: u64 = 0,
    handed_over: u64 = 0,
    refused: u64 = 0,
    seals_finished: u64 = 0,
    snapshots: u64 = 0,
    /// Ended by an almost full disk.
    snapshots_ended: u64 = 0,
    /// Blocks and units that were damaged and repaired.
    repaired: u64 = 0,
    longest_opening_us: u64 = 0,

    pub fn add(counts: *Counts, other: *const Counts) void {
        for (std.enums.values(Kind)) |kind| {
            counts.operations.getPtr(kind).* += other.operations.get(kind);
            counts.cut.getPtr(kind).* += other.cut.get(kind);
        }
        inline for (.{
            "power_cuts",
            "kills",
            "restarts_cut",
            "fleeting_lost",
            "handed_over",
            "refused",
            "seals_finished",
            "snapshots",
            "snapshots_ended",
            "repaired",
        }) |name|
            @field(counts, name) += @field(other, name);
        counts.longest_opening_us = @max(counts.longest_opening_us, other.longest_opening_us);
    }

    pub fn total(counts: *const Counts) u64 {
        var sum: u64 = 0;
        for (std.enums.values(Kind)) |kind| sum += counts.operations.get(kind);
        return sum;
    }
};

/// Hashes of the disks that power cuts left.
pub const CrashStates = std.AutoHashMapUnmanaged(u64, void);

/// Injected by the caller; outlives a disk.
pub const Environment = struct {
    gpa: std.mem.Allocator,
    /// Null disables imports.
    io: ?std.Io,
    /// For syncs, which are larger than everything else.
    batches: *[3]WriteLayer.Batch,
    counts: *Counts,
    /// Null does not count them.
    crash_states: ?*CrashStates = null,
    /// Mutant of the simulated disk.
    skipped_call: ?SimFiles.SkippedCall = null,
    versions_kept: u8 = versions_max,
};

environment: Environment,
prng: Prng,
geometry: Geometry,
sim: SimFiles,
store: Store = undefined,
is_store_open: bool = false,
versions: BoundedArray(Version, versions_max + 4) = .empty,
devices: std.EnumArray(LayerKind, StoreDevice) = undefined,
ids: u64 = 0,
stamp_count: u64 = 0,
/// Pending operation: a version that may exist, one that may be gone.
pending: ?Version = null,
leaving: ?Uuid = null,
/// A block that is damaged at rest.
damaged: ?store_repair.Damaged = null,
/// While an image is read: how many more operations others may do, and how one failed.
meanwhile: struct { chances: u8 = 0, problem: ?Failure = null } = .{},
/// A block of a snapshot is being read.
is_snapshot_read: bool = false,
/// The violation, for people.
violation: []const u8 = "",

/// The model must not move.
pub fn init(
    model: *StoreModel,
    environment: Environment,
    seed: u64,
    geometry: Geometry,
) Error!void {
    model.* = .{
        .environment = environment,
        .prng = .init(seed),
        .geometry = geometry,
        .sim = try .init(environment.gpa, seed ^ 0x5eed),
    };
    const files = model.sim.files();
    Store.make(files, .{ .id = .fromRandom(@splat(1)), .seed = @splat(2) }) catch
        return model.fail("a store cannot be made");
    model.openStore() catch return model.fail("a store that was made does not open");
    const first = model.nextId();
    model.commitEmpty(first) catch return model.fail("an empty version cannot be sealed");
    model.sim.syncAll();
    model.sim.skipped_call = environment.skipped_call;
    model.versions.appendAssumeCapacity(.{ .id = first, .content = @splat(0) });
    model.devices = .{ .values = .{
        .{
            .class = .maintenance,
            .device_id = idOf(9),
            .version_id = undefined,
            .name_id = undefined,
            .below = first,
        },
        .{
            .class = .edge_persistent,
            .device_id = idOf(10),
            .version_id = first,
            .name_id = idOf(10),
            .below = first,
        },
        .{
            .class = .edge,
            .device_id = idOf(11),
            .version_id = first,
            .name_id = undefined,
            .below = first,
        },
    } };
    for (std.enums.values(LayerKind)) |who| try model.beginLayer(who, 0);
}

pub fn deinit(model: *StoreModel) void {
    model.closeAll();
    for (&model.devices.values) |*device| device.deinit(model.environment.gpa);
    model.sim.deinit();
    model.* = undefined;
}

/// Runs the operation, interrupted if `cut` says so and it lasts that long, then reads what it
/// touched.
pub fn step(model: *StoreModel, operation: Operation, cut: ?Cut) Error!void {
    const kind: Kind = operation;
    model.environment.counts.operations.getPtr(kind).* += 1;
    if (cut) |wanted| model.sim.stop_after = model.sim.operations + wanted.calls;
    const done = model.apply(operation);
    const is_cut = model.sim.operations >= model.sim.stop_after;
    model.sim.stop_after = std.math.maxInt(u64);
    if (done) |_| {} else |err| if (err == error.Violation) return error.Violation;
    if (is_cut) {
        model.environment.counts.cut.getPtr(kind).* += 1;
        return store_restart.restart(model, .{
            .is_power_cut = cut.?.how == .crash,
            .loss = cut.?.loss,
            .is_interrupted = true,
        });
    }
    done catch |err| return switch (err) {
        error.Violation, error.OutOfMemory, error.Stopped => |own| own,
        else => model.fail(@errorName(err)),
    };
    switch (operation) {
        .write, .write_part, .discard => |range| try store_checks.checkRange(model, range),
        .read => |who| try store_checks.checkRange(
            model,
            .{ .who = who, .first = 0, .count = @intCast(model.geometry.sectorCount()) },
        ),
        .kill => try store_restart.restart(model, .{ .is_power_cut = false }),
        .crash => try store_restart.restart(model, .{
            .is_power_cut = true,
            .loss = if (cut) |wanted| wanted.loss else .any,
        }),
        .seal, .merge, .import => try store_checks.checkContent(
            model,
            &model.versions.slice()[model.versions.constSlice().len - 1],
        ),
        .compress => for (model.versions.slice()) |*version|
            try store_checks.checkContent(model, version),
        else => {},
    }
}

pub const Failure = Error || store_module.seal.Error || store_module.merge.Error ||
    WriteLayer.OpenError || WriteLayer.WriteError ||
    store_module.collect.Error || store_module.compress.Error || store_module.import.Error ||
    store_module.import_checkpoint.Error || DeviceSnapshot.Failure ||
    store_module.repair.FindError || store_module.repair.WriteError ||
    error{ Locked, Misfit, RecordDamaged, Needed };

fn apply(model: *StoreModel, operation: Operation) Failure!void {
    switch (operation) {
        .write, .write_part => |range| try model.write(range),
        .discard => |range| try model.discard(range),
        .flush => |who| try model.flush(who),
        .sync_begin => |who| try model.beginSync(who),
        .sync_end => |who| try model.endSync(who),
        .read => |who| _ = try model.openLayer(who),
        .snapshot => try model.beginSnapshot(),
        .snapshot_step => for (0..model.prng.between(1, snapshot_rounds_max)) |_|
            try model.proceedSnapshot(.{ .is_written = true }),
        .seal => try model.seal(),
        .merge => try model.merge(),
        .import => try model.import(),
        .compress => try model.compress(),
        .revert => try model.leaveLayer(.maintenance),
        .boot => |who| try model.boot(who),
        .kill, .crash => {},
        .repair => try store_repair.rot(model),
    }
}

pub fn openStore(model: *StoreModel) !void {
    assert(!model.is_store_open);
    model.store = try .open(
        model.environment.gpa,
        model.sim.files(),
        .{ .cache_nodes = 16, .file_size_max = 64 << 10 },
    );
    model.is_store_open = true;
}

fn nextId(model: *StoreModel) Uuid {
    model.ids += 1;
    return idOf(model.ids << 8);
}

fn idOf(number: u64) Uuid {
    var bytes: [16]u8 = @splat(0);
    std.mem.writeInt(u64, bytes[8..], number, .big);
    return .fromRandom(bytes);
}

pub const vdisk: Uuid = .fromRandom(@splat(3));

fn commitEmpty(model: *StoreModel, id: Uuid) !void {
    var change = try model.store.lockForChange();
    defer change.end();
    try change.commit(&.{
        .store = model.store.id,
        .organization = .zero,
        .vdisk = vdisk,
        .version = id,
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 0,
        .disk_size = model.geometry.diskSize(),
        .root = .zeros,
    });
}

pub fn findVersion(model: *StoreModel, id: Uuid) *Version {
    for (model.versions.slice()) |*version| if (version.id.eql(id)) return version;
    unreachable; // Versions below others never go.
}

/// A device starts over above a version.
pub fn beginLayer(model: *StoreModel, who: LayerKind, below: usize) Error!void {
    const device = model.devices.getPtr(who);
    assert(!device.is_open);
    const version = &model.versions.slice()[below];
    switch (who) {
        .maintenance => {
            device.name_id = model.nextId();
            device.version_id = device.name_id;
        },
        .persistent => device.version_id = version.id,
        .fleeting => {
            // Id of the boot.
            device.name_id = model.nextId();
            device.version_id = version.id;
        },
    }
    return device.begin(model.environment.gpa, version.id, &version.content);
}

pub fn openLayer(model: *StoreModel, who: LayerKind) Failure!*StoreDevice {
    const device = model.devices.getPtr(who);
    if (device.is_open) return device;
    var name: store_module.files.Name = undefined;
    const dir = device.dir(&name);
    device.version = try model.store.openVersion(device.below);
    errdefer device.version.close();
    const source = device.version.reader.source();
    const binding = device.binding(device.version.manifest.root.hash, model.geometry.diskSize());
    const files = model.sim.files();
    device.layer = WriteLayer.open(
        model.environment.gpa,
        files,
        dir,
        &binding,
        source,
    ) catch |err| blk: {
        if (err != error.NotFound or device.is_made) return err;
        break :blk try WriteLayer.create(model.environment.gpa, files, dir, .{
            .layer_id = device.name_id,
            .binding = binding,
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, source);
    };
    device.is_made = true;
    device.is_open = true;
    return device;
}

/// Byte offset of a sector on the disk.
pub fn offsetOf(model: *const StoreModel, sector: usize) u64 {
    return model.geometry.places()[sector / sectors_per_block] * block.block_size +
        sector % sectors_per_block * sector_size;
}

/// Counts contiguous sectors from `first` on, at most `most`.
pub fn runOf(model: *const StoreModel, first: usize, most: usize) usize {
    var count = @min(most, sectors_per_block - first % sectors_per_block);
    while (count < most and
        model.offsetOf(first + count) == model.offsetOf(first) + count * sector_size)
        count += @min(most - count, sectors_per_block);
    return count;
}

pub const DiskBytes = [sectors * sector_size]u8;

fn write(model: *StoreModel, range: Range) Failure!void {
    const device = try model.openLayer(range.who);
    if (device.isFull()) try model.flush(range.who);
    var bytes: DiskBytes align(8) = undefined;
    model.stamp_count += 1;
    // Sometimes zeros, which are stored as a hole.
    const stamp = if (model.prng.chance(1, 8)) 0 else model.stamp_count;
    const count = model.runOf(range.first, range.count);
    const part = bytes[0 .. count * sector_size];
    store_stamps.fill(part, stamp, model.offsetOf(range.first) / sector_size);
    try device.note(model.environment.gpa, range.first, count, stamp);
    try device.layer.write(part, model.offsetOf(range.first));
}

fn discard(model: *StoreModel, range: Range) Failure!void {
    const device = try model.openLayer(range.who);
    if (device.isFull()) try model.flush(range.who);
    const count = model.runOf(range.first, range.count);
    var before: StoreDevice.Content = undefined;
    for (before[0..count], range.first..) |*stamp, sector| stamp.* = device.now(sector);
    try device.note(model.environment.gpa, range.first, count, 0);
    const offset, const size = .{ model.offsetOf(range.first), count * sector_size };
    device.layer.kept_part_size = store_module.block.block_size;
    var done: usize = 0;
    while (true) {
        done += @intCast(try device.layer.discardPart(offset + done, size - done));
        if (done == size) return;
        const zeros = done / sector_size;
        for (before[0..zeros]) |*stamp| stamp.* = 0;
        try store_checks.checkSectors(model, device, range.first, before[0..count]);
        // The device writes nothing before the rest.
        if (!model.is_snapshot_read and range.who == .persistent)
            try model.proceedSnapshot(.{ .is_written = false });
    }
}

fn flush(model: *StoreModel, who: LayerKind) Failure!void {
    try model.endSync(who);
    const device = try model.openLayer(who);
    try device.layer.flush(&model.environment.batches[@backingInt(who)]);
    // A volatile layer promises nothing, and nothing else may replace it before it is gone.
    device.settle();
}

fn beginSync(model: *StoreModel, who: LayerKind) Failure!void {
    try model.endSync(who);
    const device = try model.openLayer(who);
    if (device.layer.beginSync(
        &model.environment.batches[@backingInt(who)],
    )) device.beginSync() else device.settle();
}

fn endSync(model: *StoreModel, who: LayerKind) Failure!void {
    const device = model.devices.getPtr(who);
    if (device.syncing == null) return;
    try device.layer.endSync(device.layer.runSync(&model.environment.batches[@backingInt(who)]));
    device.endSync();
}

/// Takes a snapshot of the persistent layer.
fn beginSnapshot(model: *StoreModel) Failure!void {
    const io = model.environment.io orelse return;
    const device = try model.openLayer(.persistent);
    if (device.snapshot != null) return;
    var name: store_module.files.Name = undefined;
    const snapshot: *DeviceSnapshot = try .open(io, model.sim.files(), device.dir(&name));
    errdefer snapshot.close();
    // The device writes until the moment.
    if (model.prng.chance(1, 4)) try model.changePersistent();
    return device.beginSnapshot(snapshot);
}

fn proceedSnapshot(model: *StoreModel, beside: struct { is_written: bool }) Failure!void {
    const device = model.devices.getPtr(.persistent);
    const snapshot = device.snapshot orelse return;
    if (beside.is_written and model.prng.chance(1, 60)) {
        snapshot.fillDisk();
        // No write fails because of the snapshot.
        return model.changePersistent();
    }
    const is_written = beside.is_written and model.prng.chance(1, 2);
    model.meanwhile.problem = null;
    const is_complete = snapshot.proceed(if (is_written) .{
        .context = model,
        .write = changeWhileRead,
    } else null);
    if (model.meanwhile.problem) |problem| return problem;
    const is_over = is_complete catch |err| {
        if (err != error.NoSpace or !snapshot.isDiskFull()) return err;
        model.environment.counts.snapshots_ended += 1;
        return device.endSnapshot();
    };
    if (!is_over) return;
    try model.checkSnapshot(device);
    device.endSnapshot();
    model.environment.counts.snapshots += 1;
}

fn changeWhileRead(context: *anyopaque) void {
    const model: *StoreModel = @ptrCast(@alignCast(context));
    model.is_snapshot_read = true;
    defer model.is_snapshot_read = false;
    model.changePersistent() catch |err| {
        model.meanwhile.problem = err;
    };
}

fn changePersistent(model: *StoreModel) Failure!void {
    const count = model.geometry.sectorCount();
    const first = model.prng.below(count);
    const range: Range = .{
        .who = .persistent,
        .first = @intCast(first),
        .count = @intCast(model.prng.between(1, count - first)),
    };
    return if (model.prng.chance(1, 4)) model.discard(range) else model.write(range);
}

/// Imports the file of the snapshot, and compares every byte.
fn checkSnapshot(model: *StoreModel, device: *StoreDevice) Failure!void {
    const files = model.sim.files();
    // Of a check that was interrupted.
    try WriteLayer.remove(files, snapshot_dir);
    try device.snapshot.?.import(snapshot_dir);
    const binding = device.binding(device.version.manifest.root.hash, model.geometry.diskSize());
    {
        const source = device.version.reader.source();
        const gpa = model.environment.gpa;
        var layer: WriteLayer = try .open(gpa, files, snapshot_dir, &binding, source);
        defer layer.close(gpa);
        for (device.snapshot_content[0..model.geometry.sectorCount()], 0..) |stamp, sector| {
            var bytes: [sector_size]u8 align(8) = undefined;
            try layer.read(&bytes, model.offsetOf(sector));
            if (store_stamps.stampOf(&bytes) != stamp)
                return model.fail("a snapshot has a byte of another moment");
        }
    }
    return WriteLayer.remove(files, snapshot_dir);
}

pub fn seal(model: *StoreModel) Failure!void {
    try model.trim();
    try model.flush(.maintenance);
    model.devices.getPtr(.maintenance).close(model.environment.gpa);
    try model.sealLayer();
}

/// After a flush of the layer.
pub fn sealLayer(model: *StoreModel) Failure!void {
    const device = model.devices.getPtr(.maintenance);
    var sealed: Version = .{ .id = device.version_id, .content = device.content() };
    {
        var change = try model.store.lockForChange();
        defer change.end();
        var parent = try model.store.openVersion(device.below);
        defer parent.close();
        const made = try store_module.seal.seal(model.environment.gpa, &change, &parent, &.{
            .version = sealed.id,
            .number = 1,
            .created_unix_ms = 0,
            .kernel = null,
            .initrd = null,
            .command_line = "",
        }, null);
        sealed.counter = try model.higher(made.counter);
    }
    try model.adopt(sealed);
}

/// The layer has become a version, and the next one is above it.
pub fn adopt(model: *StoreModel, version: Version) Error!void {
    model.versions.appendAssumeCapacity(version);
    return model.beginLayer(.maintenance, model.versions.constSlice().len - 1);
}

fn merge(model: *StoreModel) Failure!void {
    try model.trim();
    const newest = model.versions.constSlice()[model.versions.constSlice().len - 1];
    var made: Version = .{ .id = model.nextId(), .content = newest.content };
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
    // If interrupted here, the version exists and its counter is unknown.
    if (model.store.manifestOf(made.id)) |manifest| {
        made.counter = try model.higher(manifest.counter);
    } else |err| if (!model.isStopped()) return err;
    model.versions.appendAssumeCapacity(made);
}

/// Imports an image that differs from its parent in some sectors.
fn import(model: *StoreModel) Failure!void {
    const io = model.environment.io orelse return;
    try model.trim();
    const parent =
        model.versions.constSlice()[@intCast(model.prng.below(model.versions.constSlice().len))];
    var made: Version = .{ .id = model.nextId(), .content = parent.content };
    const count = model.geometry.sectorCount();
    for (0..model.prng.below(4)) |_| {
        model.stamp_count += 1;
        const first: usize = @intCast(model.prng.below(count));
        for (made.content[first..@min(
            count,
            first + sectors_per_block,
        )]) |*stamp| stamp.* = model.stamp_count;
    }
    model.pending = made;
    const manifest = try store_import.begin(
        model,
        io,
        made.id,
        if (model.prng.chance(1, 4)) .zero else parent.id,
    );
    model.pending = null;
    made.counter = try model.higher(manifest.counter);
    model.versions.appendAssumeCapacity(made);
}

/// Packs all versions again. Those that somebody has open are read as before, also when what
/// nobody needs any more is freed.
fn compress(model: *StoreModel) Failure!void {
    var compression: store_module.Compression =
        try .init(std.heap.smp_allocator, &model.store);
    defer compression.deinit();
    while (true) {
        var change = try model.store.lockForChange();
        defer change.end();
        if (!try compression.step(&change)) break;
        if (model.prng.chance(1, 2)) try store_import.collect(model, &change);
    }
}

/// The image to import: the bytes of the version to be made.
pub fn imageSector(model: *const StoreModel, offset: u64) u64 {
    return model.sectorOf(&model.pending.?.content, offset);
}

pub fn sectorOf(model: *const StoreModel, content: *const Content, offset: u64) u64 {
    const places = model.geometry.places();
    for (places, 0..) |place, index| {
        if (offset / block.block_size == place)
            return content[index * sectors_per_block + offset % block.block_size / sector_size];
    }
    return 0;
}

fn higher(model: *StoreModel, counter: u64) Error!u64 {
    for (model.versions.constSlice()) |*version| {
        if (counter <= version.counter) return model.fail(
            "the counter of a version is not higher than that of all others",
        );
    }
    return counter;
}

/// Deletes the oldest versions without a layer above, and collects their blocks.
fn trim(model: *StoreModel) Failure!void {
    if (model.versions.constSlice().len <= model.environment.versions_kept) return;
    var change = try model.store.lockForChange();
    defer change.end();
    while (model.versions.constSlice().len > model.environment.versions_kept) {
        const oldest = for (model.versions.constSlice(), 0..) |version, index| {
            const is_needed = for (&model.devices.values) |*device| {
                if (device.below.eql(version.id)) break true;
            } else false;
            if (!is_needed) break index;
        } else unreachable; // There are fewer layers.
        const version = &model.versions.slice()[oldest];
        try store_checks.checkContent(model, version);
        if (change.delete(version.id)) |_| return model.fail(
            "a version that somebody reads is deleted",
        ) else |err| if (err != error.Locked) return err;
        model.closeVersion(version);
        model.leaving = version.id;
        try change.delete(version.id);
        model.removeVersion(oldest);
        model.leaving = null;
    }
    return store_import.collect(model, &change);
}

pub fn removeVersion(model: *StoreModel, index: usize) void {
    const items = model.versions.slice();
    std.mem.copyForwards(Version, items[index..], items[index + 1 ..]);
    _ = model.versions.swapRemove(@intCast(items.len - 1));
}

/// Discards the writes; the device continues above any version.
fn leaveLayer(model: *StoreModel, who: LayerKind) Failure!void {
    const device = model.devices.getPtr(who);
    device.close(model.environment.gpa);
    device.is_removing = true;
    if (device.is_made) try model.removeLayer(who);
    return model.beginLayer(who, @intCast(model.prng.below(model.versions.constSlice().len)));
}

pub fn removeLayer(model: *StoreModel, who: LayerKind) Failure!void {
    const device = model.devices.getPtr(who);
    var name: store_module.files.Name = undefined;
    if (who != .maintenance) return WriteLayer.remove(model.sim.files(), device.dir(&name));
    var change = try model.store.lockForChange();
    defer change.end();
    return store_module.seal.removeLayer(model.sim.files(), device.name_id);
}

/// A device's writes belong to the version that it booted: another version refuses them, and only
/// then are they dropped.
fn boot(model: *StoreModel, who: LayerKind) Failure!void {
    const device = model.devices.getPtr(who);
    if (who == .persistent and device.is_made) {
        device.close(model.environment.gpa);
        const other =
            &model.versions.slice()[@intCast(model.prng.below(model.versions.constSlice().len))];
        if (!other.id.eql(device.below)) try store_checks.mustRefuse(model, device, other.id);
    }
    return model.leaveLayer(who);
}

pub fn closeAll(model: *StoreModel) void {
    for (&model.devices.values) |*device| device.close(model.environment.gpa);
    for (model.versions.slice()) |*version| model.closeVersion(version);
    if (model.is_store_open) model.store.close(model.environment.gpa);
    model.is_store_open = false;
}

pub fn isStopped(model: *const StoreModel) bool {
    return model.sim.operations >= model.sim.stop_after;
}

pub fn isThere(model: *StoreModel, id: Uuid) Failure!bool {
    _ = model.store.manifestOf(id) catch |err| return if (err == error.NotFound) false else err;
    return true;
}

pub fn closeVersion(model: *StoreModel, version: *Version) void {
    const opened = version.opened orelse return;
    opened.close();
    model.environment.gpa.destroy(opened);
    version.opened = null;
}

pub fn failUnlessStopped(model: *StoreModel, err: anyerror, what: []const u8) Error {
    if (!model.isStopped()) return model.fail(what);
    model.violation = @errorName(err);
    return error.Stopped;
}

pub fn fail(model: *StoreModel, what: []const u8) Error {
    model.violation = what;
    return error.Violation;
}
