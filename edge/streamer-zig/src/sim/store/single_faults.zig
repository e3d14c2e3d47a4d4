//! Runs each job of the store many times, each time with one fault at another place: one of its
//! calls of the disk fails, memory runs out at one of its allocations, or the power is cut at one
//! of its changing calls. A job is done completely or not at all, what it reports as done is
//! durable, it closes each file once, and it can be repeated.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const SignatureMemory = @import("../kit/signature_memory.zig");
const SimFiles = @import("../kit/sim_files.zig");
const tiny_disk = @import("tiny_disk.zig");
const testing = std.testing;

const Appender = store_module.Appender;
const block = store_module.block;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Files = store_module.Files;
const Import = store_module.import.Import;
const Store = store_module.Store;
const Uuid = base.Uuid;
const Usage = store_module.usage.Usage;
const WriteLayer = store_module.WriteLayer;

/// More than any job has calls or allocations.
const faults_max = 600;

const block_count = tiny_disk.block_count;
const disk_size = tiny_disk.size;
const places = tiny_disk.places;
const Content = tiny_disk.Content;
const Image = tiny_disk.Image;
const blockOf = tiny_disk.blockOf;
const byteOf = tiny_disk.byteOf;

pub const base_content: Content = .{ 1, 2, 3, 4, 0, 6 };
const next_content = tiny_disk.next_content;
const layer_content: Content = .{ 70, 2, 0, 74, 0, 76 };

pub const base_id = idOf(1);
const next_id = idOf(2);
const sealed_id = idOf(3);
const merged_id = idOf(4);
pub const imported_id = idOf(5);
const device_id = idOf(6);
const vdisk_id = idOf(7);

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

/// One machine: its disk, and the memory of its process.
pub const Machine = struct {
    sim: SimFiles,
    gpa: std.mem.Allocator = testing.allocator,

    fn files(machine: *Machine) Files {
        return machine.sim.files();
    }

    pub fn openStore(machine: *Machine) !Store {
        // Files of a few blocks: each job fills some.
        return .open(machine.gpa, machine.files(), .{
            .cache_nodes = 16,
            .file_size_max = 3 * block.block_size,
        });
    }
};

pub const Job = struct {
    prepare: []const *const fn (*Machine) anyerror!void = &.{},
    run: *const fn (*Machine) anyerror!void,
    /// Returns false if nothing was done; fails if a part was done that anybody could see.
    isDone: *const fn (*Machine) anyerror!bool,
    /// What the next change of the store finds done is durable, even if the job reported a failure.
    /// Otherwise the job must be done again.
    is_settled_by_change: bool = true,
    /// What is lost after a success.
    loss: SimFiles.Loss = .all,
    /// How a call of the disk fails.
    failures: []const store_module.files.Error = &.{error.DiskFailed},
};

/// Runs the job with each fault.
pub fn expectWhole(job: *const Job) !void {
    const memory: *SignatureMemory = try .create(testing.allocator);
    defer testing.allocator.destroy(memory);
    const known = memory.interface();
    store_module.simulated.memory = &known;
    defer store_module.simulated.memory = null;
    var prepared: Prepared = .{ .job = job };
    for (job.failures) |failure| for (0..faults_max) |call| {
        if (!try prepared.withFailure(call, failure)) break;
    } else return error.TooManyCalls;
    for (0..faults_max) |index| {
        if (!try prepared.withoutMemory(index)) break;
    } else return error.TooManyAllocations;
    for (std.enums.values(SimFiles.Loss)) |loss| {
        for (0..faults_max) |call| {
            if (!try prepared.withPowerCut(call, loss)) break;
        } else return error.TooManyCalls;
    }
}

const Prepared = struct {
    job: *const Job,

    fn init(prepared: *const Prepared, machine: *Machine, seed: u64) !void {
        machine.* = .{ .sim = try .init(testing.allocator, seed) };
        errdefer machine.sim.deinit();
        for (prepared.job.prepare) |step| step(machine) catch |err| {
            std.debug.print("preparing: {t}\n", .{err});
            return err;
        };
        machine.sim.syncAll();
        if (try prepared.job.isDone(machine)) return error.DoneBeforeItBegan;
        try expectClosed(machine);
        machine.sim.calls = 0;
    }

    /// Returns false if the job has fewer calls.
    fn withFailure(
        prepared: *const Prepared,
        call: u64,
        failure: store_module.files.Error,
    ) !bool {
        const job = prepared.job;
        var machine: Machine = undefined;
        try prepared.init(&machine, call);
        defer machine.sim.deinit();
        machine.sim.fail_call = call;
        machine.sim.fail_with = failure;
        const result = job.run(&machine);
        const has_failed = machine.sim.calls > call;
        machine.sim.fail_call = std.math.maxInt(u64);
        try expectClosed(&machine);
        if (result) |_| {} else |err| {
            if (!has_failed) return err;
            if (err == error.TestUnexpectedResult) return err;
            try repeat(&machine, job);
        }
        try expectDone(&machine, job);
        return has_failed;
    }

    /// Returns false if the job allocates less often.
    fn withoutMemory(prepared: *const Prepared, index: usize) !bool {
        const job = prepared.job;
        var machine: Machine = undefined;
        try prepared.init(&machine, index);
        defer machine.sim.deinit();
        var failing: testing.FailingAllocator = .init(testing.allocator, .{ .fail_index = index });
        machine.gpa = failing.allocator();
        const result = job.run(&machine);
        machine.gpa = testing.allocator;
        try expectClosed(&machine);
        if (!failing.has_induced_failure) {
            try result;
            return false;
        }
        if (result) |_| {} else |err| {
            try testing.expectEqual(error.OutOfMemory, err);
            try repeat(&machine, job);
        }
        try expectDone(&machine, job);
        return true;
    }

    /// Returns false if the job has fewer changing calls.
    fn withPowerCut(prepared: *const Prepared, call: u64, loss: SimFiles.Loss) !bool {
        const job = prepared.job;
        var machine: Machine = undefined;
        try prepared.init(&machine, call);
        defer machine.sim.deinit();
        machine.sim.stop_after = machine.sim.operations + call;
        const result = job.run(&machine);
        const is_cut = machine.sim.operations >= machine.sim.stop_after;
        if (!is_cut) {
            try result;
            try expectDone(&machine, job);
            return false;
        }
        machine.sim.crashWith(loss);
        try repeat(&machine, job);
        try expectDone(&machine, job);
        return true;
    }
};

/// The next process finishes a change that was interrupted, or does the job again.
fn repeat(machine: *Machine, job: *const Job) !void {
    try settle(machine);
    if (try job.isDone(machine)) {
        if (job.is_settled_by_change) return;
        machine.sim.crashWith(job.loss);
        if (try job.isDone(machine)) return;
    }
    try expectClosed(machine);
    try job.run(machine);
    try expectClosed(machine);
}

fn settle(machine: *Machine) !void {
    var store = machine.openStore() catch |err| return if (err == error.NotAStore) {} else err;
    defer store.close(machine.gpa);
    var change = try store.lockForChange();
    change.end();
}

fn expectDone(machine: *Machine, job: *const Job) !void {
    machine.sim.crashWith(job.loss);
    try testing.expect(try job.isDone(machine));
}

fn expectClosed(machine: *Machine) !void {
    try testing.expectEqual(0, machine.sim.openHandles());
    try testing.expectEqual(0, machine.sim.closed_again);
}

// Checks.

pub fn expectContent(machine: *Machine, id: Uuid, content: *const Content) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(id);
    defer version.close();
    const source = version.reader.source();
    try testing.expectEqual(disk_size, source.size);
    var index: u64 = 0;
    while (index < block_count) : (index += 1) {
        var bytes: block.Block = undefined;
        const size: usize = @intCast(@min(bytes.len, disk_size - index * block.block_size));
        try source.read(bytes[0..size], index * block.block_size);
        try testing.expect(std.mem.allEqual(u8, bytes[0..size], byteOf(content, index)));
    }
}

fn isVersionThere(machine: *Machine, id: Uuid, content: *const Content) !bool {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    const manifest = store.manifestOf(id) catch |err|
        return if (err == error.NotFound) false else err;
    try expectContent(machine, id, content);
    // Its counter is never used again.
    var change = try store.lockForChange();
    defer change.end();
    try testing.expect(try change.nextCounter() > manifest.counter);
    return true;
}

/// Bytes that the files of a kind take.
fn allocatedIn(machine: *Machine, dir: []const u8) !u64 {
    var sum: u64 = 0;
    var name: store_module.files.Name = undefined;
    var path: store_module.files.Name = undefined;
    var at: []const u8 = "";
    while (try machine.files().nextName(dir, at, &name)) |found| {
        at = found;
        const handle =
            try machine.files().open(try std.mem.print(&path, "{s}/{s}", .{ dir, found }), .read);
        defer machine.files().close(handle);
        sum += try machine.files().allocated(handle);
    }
    return sum;
}

fn isEmpty(machine: *Machine, dir: []const u8) !bool {
    var name: store_module.files.Name = undefined;
    return try machine.files().nextName(dir, "", &name) == null;
}

// Jobs.

pub fn makeStore(machine: *Machine) !void {
    Store.make(machine.files(), .{ .id = idOf(9), .seed = @splat(2) }) catch |err|
        if (err != error.Exists) return err;
}

fn isMade(machine: *Machine) !bool {
    var store = machine.openStore() catch |err|
        return if (err == error.NotAStore) false else err;
    defer store.close(machine.gpa);
    try testing.expect(store.id.eql(idOf(9)));
    var change = try store.lockForChange();
    defer change.end();
    _ = try change.key();
    for ([_][]const u8{
        "extents", "nodes",  "versions", "boot-bundles",
        "imports", "layers", "profiles", "file-maps",
    }) |dir| try testing.expect(try isEmpty(machine, dir));
    return true;
}

fn commit(
    machine: *Machine,
    id: Uuid,
    parent: Uuid,
    before: *const Content,
    content: *const Content,
) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var change = try store.lockForChange();
    defer change.end();
    var data: Appender = try .init(machine.gpa, &store.data, store.options.file_size_max);
    defer data.deinit(machine.gpa);
    var nodes: Appender = try .init(machine.gpa, &store.nodes, store.options.file_size_max);
    defer nodes.deinit(machine.gpa);
    const below: block.Entry =
        if (parent.eql(.zero)) .zeros else (try store.manifestOf(parent)).root;
    var builder: store_module.TreeBuilder = .init(&store.cache, &nodes, below, block_count);
    for (places, before, content) |place, old, byte| {
        if (old == byte) continue;
        const bytes = blockOf(place, byte);
        try builder.put(place, if (byte == 0) .zeros else .{
            .hash = block.hashOf(&bytes),
            .location = try data.append(&bytes),
        });
    }
    const root = try builder.finish();
    try data.sync();
    try nodes.sync();
    try change.commit(&.{
        .store = store.id,
        .organization = .zero,
        .vdisk = vdisk_id,
        .version = id,
        .parent = parent,
        .number = 1,
        .incarnation = 0,
        .counter = try change.nextCounter(),
        .created_unix_ms = 0,
        .disk_size = disk_size,
        .root = root,
    });
}

pub fn commitBase(machine: *Machine) !void {
    return commit(machine, base_id, .zero, &@splat(0), &base_content);
}

fn commitNext(machine: *Machine) !void {
    return commit(machine, next_id, base_id, &base_content, &next_content);
}

fn isNextThere(machine: *Machine) !bool {
    try expectContent(machine, base_id, &base_content);
    return isVersionThere(machine, next_id, &next_content);
}

fn deleteBase(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var change = try store.lockForChange();
    defer change.end();
    change.delete(base_id) catch |err| if (err != error.NotFound) return err;
    var collection: store_module.collect.Collection = try .begin(machine.gpa, &change);
    defer collection.end();
    while (try collection.step(block.block_size)) {}
}

fn isBaseFreed(machine: *Machine) !bool {
    try expectContent(machine, next_id, &next_content);
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    const is_there = if (store.manifestOf(base_id)) |_| true else |err| blk: {
        if (err != error.NotFound) return err;
        break :blk false;
    };
    var usage: Usage = try .of(machine.gpa, &store);
    defer usage.deinit();
    const sizes = try usage.sizesOf(&store, &try store.manifestOf(next_id));
    const allocated = try allocatedIn(machine, "extents") + try allocatedIn(machine, "nodes");
    if (is_there) {
        try expectContent(machine, base_id, &base_content);
        return false;
    }
    return allocated == sizes.own + sizes.shared;
}

/// Of the extents remain the 4 KiB in which something is that the import needs.
fn isBaseFreedBelow(machine: *Machine) !bool {
    try expectContent(machine, imported_id, &next_content);
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    if (store.manifestOf(base_id)) |_|
        return false
    else |err| if (err != error.NotFound) return err;
    var usage: Usage = try .of(machine.gpa, &store);
    defer usage.deinit();
    var used: u64 = 0;
    var file: block.FileNumber = 0;
    while (try store.data.next(file)) |found| {
        file = found;
        const size = try store.files.size(try store.data.handleOf(file));
        for (0..@intCast(block.blockCount(size))) |index| {
            const at: block.Location = .{ .file = file, .block = @intCast(index) };
            if (usage.data.useOf(at) != .none) used += block.block_size;
        }
    }
    return try allocatedIn(machine, "extents") == used;
}

fn bindingOf(class: WriteLayer.Class, version: Uuid, root: [32]u8) WriteLayer.Binding {
    return .{
        .class = class,
        .device_id = device_id,
        .version_id = version,
        .version_root = root,
        .disk_size = disk_size,
    };
}

fn nameOf(class: WriteLayer.Class) Uuid {
    if (class == .maintenance) return sealed_id;
    return store_module.device_layers.nameOf(
        .{ .class = class, .device_id = device_id, .vdisk_id = vdisk_id },
    );
}

fn versionOf(class: WriteLayer.Class) Uuid {
    return if (class == .maintenance) sealed_id else base_id;
}

/// Opens or makes the layer of this class above the base, and writes what differs.
fn writeLayer(machine: *Machine, class: WriteLayer.Class) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(base_id);
    defer version.close();
    var name: store_module.files.Name = undefined;
    const dir = store_module.device_layers.dirOf(nameOf(class), &name);
    const binding = bindingOf(class, versionOf(class), version.manifest.root.hash);
    const source = version.reader.source();
    var layer = WriteLayer.open(machine.gpa, machine.files(), dir, &binding, source) catch |err|
        if (err == error.NotFound) try WriteLayer.create(machine.gpa, machine.files(), dir, .{
            .layer_id = idOf(8),
            .binding = binding,
            .limit_bytes = disk_size,
            .sequence = 0,
        }, source) else return err;
    defer layer.close(machine.gpa);
    const batch = try machine.gpa.create(WriteLayer.Batch);
    defer machine.gpa.destroy(batch);
    for (places, base_content, layer_content, 0..) |place, old, byte, index| {
        if (old == byte) continue;
        const bytes = blockOf(place, byte);
        const size: usize = @intCast(@min(bytes.len, disk_size - place * block.block_size));
        const at = place * block.block_size;
        if (byte == 0) {
            try layer.discard(at, size);
        } else if (index == 0) {
            // In two parts: the first one needs the rest of the block from below.
            try layer.write(bytes[0..512], at);
            try layer.flush(batch);
            try layer.write(bytes[512..], at + 512);
        } else try layer.write(bytes[0..size], at);
    }
    try layer.flush(batch);
}

/// Returns false if there is no layer, or if a block of it is as it was before.
fn isLayerWritten(machine: *Machine, class: WriteLayer.Class) !bool {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(base_id);
    defer version.close();
    var name: store_module.files.Name = undefined;
    const dir = store_module.device_layers.dirOf(nameOf(class), &name);
    const binding = bindingOf(class, versionOf(class), version.manifest.root.hash);
    const source = version.reader.source();
    var layer = WriteLayer.open(machine.gpa, machine.files(), dir, &binding, source) catch |err|
        return if (err == error.NotFound) false else err;
    defer layer.close(machine.gpa);
    var is_written = true;
    var index: u64 = 0;
    while (index < block_count) : (index += 1) {
        var bytes: block.Block = undefined;
        const size: usize = @intCast(@min(bytes.len, disk_size - index * block.block_size));
        try layer.read(bytes[0..size], index * block.block_size);
        const old, const new = .{ byteOf(&base_content, index), byteOf(&layer_content, index) };
        for (0..size / 512) |sector| {
            const part = bytes[sector * 512 ..][0..512];
            if (std.mem.allEqual(u8, part, new)) continue;
            try testing.expect(std.mem.allEqual(u8, part, old));
            is_written = false;
        }
    }
    return is_written;
}

fn LayerJobs(comptime class: WriteLayer.Class) type {
    return struct {
        fn write(machine: *Machine) anyerror!void {
            return writeLayer(machine, class);
        }

        fn isWritten(machine: *Machine) anyerror!bool {
            return isLayerWritten(machine, class);
        }

        fn remove(machine: *Machine) anyerror!void {
            var name: store_module.files.Name = undefined;
            const dir = store_module.device_layers.dirOf(nameOf(class), &name);
            try WriteLayer.remove(machine.files(), dir);
        }

        fn drop(machine: *Machine) anyerror!void {
            _ = try store_module.device_layers.drop(machine.files(), device_id, class, vdisk_id);
        }

        fn revert(machine: *Machine) anyerror!void {
            try store_module.seal.removeLayer(machine.files(), sealed_id);
        }

        /// Until it is gone it is whole or cannot be opened, and never looks lost.
        fn isGone(machine: *Machine) anyerror!bool {
            if (try isLayerWritten(machine, class)) return false;
            return isEmpty(machine, "layers");
        }
    };
}

const Persistent = LayerJobs(.edge_persistent);
const Maintenance = LayerJobs(.maintenance);
const Private = LayerJobs(.private);

fn seal(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var change = try store.lockForChange();
    defer change.end();
    var parent = try store.openVersion(base_id);
    defer parent.close();
    _ = try store_module.seal.seal(machine.gpa, &change, &parent, &.{
        .version = sealed_id,
        .number = 2,
        .created_unix_ms = 0,
    }, null);
}

fn isSealed(machine: *Machine) !bool {
    if (!try isVersionThere(machine, sealed_id, &layer_content)) return false;
    try testing.expect(try isEmpty(machine, "layers"));
    try testing.expectError(error.NotFound, machine.files().open("sealing", .read));
    return true;
}

fn merge(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var change = try store.lockForChange();
    defer change.end();
    try store_module.merge.merge(&change, .{
        .of = next_id,
        .onto = null,
        .version = merged_id,
        .number = 3,
        .created_unix_ms = 0,
    });
}

fn isMerged(machine: *Machine) !bool {
    return isVersionThere(machine, merged_id, &next_content);
}

fn compress(machine: *Machine) !void {
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var compression: store_module.Compression = try .init(machine.gpa, &store);
    defer compression.deinit();
    while (true) {
        var change = try store.lockForChange();
        defer change.end();
        if (!try compression.step(&change)) return;
    }
}

/// All have their bytes at any moment; done means that nothing is left to pack.
fn isCompressed(machine: *Machine) !bool {
    try expectContent(machine, base_id, &base_content);
    try expectContent(machine, imported_id, &next_content);
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    for ([_]Uuid{ base_id, imported_id }) |id| {
        var version = try store.openVersion(id);
        defer version.close();
        for (0..block_count) |index| {
            const entry = try version.reader.entryOf(index);
            if (entry.isZeros()) continue;
            if (!entry.location.is_packed) return false;
            var header: [store_module.unit.header_size]u8 = undefined;
            if (!try store.data.read(entry.location, 0, &header)) return error.Short;
            if (!store_module.unit.isSmall(&header)) return false;
        }
    }
    return true;
}

var never: std.atomic.Value(bool) = .init(false);

/// Starts the import of an update of the base, or resumes it.
fn import(machine: *Machine) !void {
    return importOver(machine, base_id);
}

pub fn importAlone(machine: *Machine) !void {
    return importOver(machine, .zero);
}

fn importOver(machine: *Machine, parent: Uuid) !void {
    const files = machine.files();
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    const given: Import.Options = .{
        .gpa = machine.gpa,
        .io = testing.io,
        .source = .{
            .context = machine,
            .vtable = &Image.vtable,
            .size = disk_size,
            .is_positional = true,
        },
        .is_canceled = &never,
        .watch = .{
            .context = machine,
            .progress = Image.progress,
            .monotonicUs = Image.monotonicUs,
        },
    };
    var change = try store.lockForChange();
    defer change.end();
    var running: Import = if (Checkpoint.read(files, imported_id)) |checkpoint|
        try .proceed(given, &change, checkpoint)
    else |err| if (err != error.NoImport) return err else try .begin(given, &change, .{
        .version = imported_id,
        .vdisk = vdisk_id,
        .parent = parent,
        .number = 2,
        .pad = false,
        .stamp = undefined,
        .source_size = undefined,
        .root_level = undefined,
    });
    defer running.deinit();
    _ = try running.run(&change);
}

fn isImported(machine: *Machine) !bool {
    return isVersionThere(machine, imported_id, &next_content);
}

/// What another store has packed: the next version over the base.
var difference_bytes: std.ArrayList(u8) = .empty;

fn packNext() !void {
    var machine: Machine = .{ .sim = try .init(testing.allocator, 1) };
    defer machine.sim.deinit();
    for ([_]*const fn (*Machine) anyerror!void{ makeStore, commitBase, commitNext }) |step|
        try step(&machine);
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var version = try store.openVersion(next_id);
    defer version.close();
    var before = try store.openVersion(base_id);
    defer before.close();
    var packing: store_module.pack.Pack = .{
        .store = &store,
        .version = &version,
        .before = &before,
        .sink = .{ .context = &difference_bytes, .write = DifferenceFile.append },
        .is_canceled = &never,
        .watch = .{ .context = &machine, .progress = DifferenceFile.ignore },
        .done = .{ .size = disk_size },
    };
    try packing.run(machine.gpa);
}

const DifferenceFile = struct {
    fn append(context: *anyopaque, bytes: []const u8) store_module.@"export".TargetError!void {
        const file: *std.ArrayList(u8) = @ptrCast(@alignCast(context));
        file.appendSlice(testing.allocator, bytes) catch return error.NoSpace;
    }

    fn ignore(_: *anyopaque, _: *const store_module.pack.Progress) void {}

    fn read(
        _: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store_module.image_source.ReadError!usize {
        const rest = difference_bytes.items[@intCast(offset)..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }

    fn now(_: *anyopaque) ?store_module.image_source.ImageSource.Now {
        return .{ .stamp = .{ .kind = .file, .inode = 2 }, .size = difference_bytes.items.len };
    }
};

/// Starts to take the packed version, or resumes it.
fn take(machine: *Machine) !void {
    const files = machine.files();
    var store = try machine.openStore();
    defer store.close(machine.gpa);
    var difference: store_module.Difference = try .open(machine.gpa, .{
        .context = machine,
        .vtable = &.{
            .read = DifferenceFile.read,
            .nextData = Image.nextData,
            .now = DifferenceFile.now,
        },
        .size = difference_bytes.items.len,
        .is_positional = true,
    });
    defer difference.close(machine.gpa);
    const given: Import.Options = .{
        .gpa = machine.gpa,
        .io = testing.io,
        .source = difference.source(),
        .is_canceled = &never,
        .watch = .{
            .context = machine,
            .progress = Image.progress,
            .monotonicUs = Image.monotonicUs,
        },
    };
    var change = try store.lockForChange();
    defer change.end();
    var running: Import = if (Checkpoint.read(files, next_id)) |checkpoint|
        try .proceed(given, &change, checkpoint)
    else |err| if (err != error.NoImport) return err else blk: {
        try difference.takeBootFiles(files, &never);
        break :blk try .begin(given, &change, difference.checkpoint());
    };
    defer running.deinit();
    _ = try running.run(&change);
}

const kernel = "a kernel that fills its file";

const BootBytes = struct {
    fn read(_: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
        const rest = kernel[@intCast(offset)..];
        @memcpy(buffer[0..rest.len], rest);
        return rest.len;
    }
};

fn takeKernel(machine: *Machine) !void {
    _ = try store_module.boot_bundle.take(
        machine.files(),
        .{ .context = machine, .read = BootBytes.read },
    );
}

fn isKernelThere(machine: *Machine) !bool {
    var hash: block.Hash = undefined;
    base.Sha256.hash(kernel, &hash, .{});
    const file: store_module.manifest.BootFile = .{ .hash = hash, .size = kernel.len };
    store_module.boot_bundle.check(machine.files(), &file) catch |err|
        return if (err == error.NotFound) false else err;
    return true;
}

test "a store is made completely or not at all" {
    try expectWhole(&.{ .run = makeStore, .isDone = isMade });
}

test "a version is committed completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase },
        .run = commitNext,
        .isDone = isNextThere,
    });
}

test "a deleted version is freed, and nothing of another one" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, commitNext },
        .run = deleteBase,
        .isDone = isBaseFreed,
        // A hole that is lost is freed by the next collection.
        .is_settled_by_change = false,
        .loss = .names,
    });
}

test "a deleted version is freed, and no packed block of another one" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, import },
        .run = deleteBase,
        .isDone = isBaseFreedBelow,
        .is_settled_by_change = false,
        .loss = .names,
    });
}

test "a layer that is made and written holds each sector as it was or as it was written" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase },
        .run = Persistent.write,
        .isDone = Persistent.isWritten,
    });
}

test "a layer is removed completely, and does not look lost before" {
    for ([_]*const fn (*Machine) anyerror!void{ Persistent.remove, Persistent.drop }) |remove|
        try expectWhole(&.{
            .prepare = &.{ makeStore, commitBase, Persistent.write },
            .run = remove,
            .isDone = Persistent.isGone,
            .is_settled_by_change = false,
        });
}

test "a private image is dropped for its device" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, Private.write },
        .run = Private.drop,
        .isDone = Private.isGone,
        .is_settled_by_change = false,
    });
}

test "a version in maintenance is discarded completely" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, Maintenance.write },
        .run = Maintenance.revert,
        .isDone = Maintenance.isGone,
        .is_settled_by_change = false,
    });
}

test "a layer becomes a version completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, Maintenance.write },
        .run = seal,
        .isDone = isSealed,
    });
}

test "versions are merged completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, commitNext },
        .run = merge,
        .isDone = isMerged,
    });
}

test "versions are packed again completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase, import },
        .run = compress,
        .isDone = isCompressed,
        .failures = &.{ error.DiskFailed, error.NoSpace },
    });
}

test "an image becomes a version completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase },
        .run = import,
        .isDone = isImported,
        .failures = &.{ error.DiskFailed, error.NoSpace },
    });
}

test "a version of another store is taken completely or not at all, also on a full disk" {
    try packNext();
    defer difference_bytes.clearAndFree(testing.allocator);
    try expectWhole(&.{
        .prepare = &.{ makeStore, commitBase },
        .run = take,
        .isDone = isNextThere,
        .failures = &.{ error.DiskFailed, error.NoSpace },
    });
}

test "a kernel is stored completely or not at all" {
    try expectWhole(&.{
        .prepare = &.{makeStore},
        .run = takeKernel,
        .isDone = isKernelThere,
        .is_settled_by_change = false,
    });
}
