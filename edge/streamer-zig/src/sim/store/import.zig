//! Imports in the store's model: an image in memory, and a clock that makes a checkpoint due after
//! each piece.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const StoreModel = @import("model.zig");
const store_stamps = @import("stamps.zig");

const Checkpoint = store.import_checkpoint.Checkpoint;
const Import = store.import.Import;
const ImageSource = store.image_source.ImageSource;
const Uuid = base.Uuid;
const sector_size = 512;

const Failure = StoreModel.Failure;

/// Others may change the store behind this many pieces of an image.
const meanwhile_max = 2;

var never: std.atomic.Value(bool) = .init(false);
threadlocal var clock_us: u64 = 0;

pub fn begin(model: *StoreModel, io: std.Io, id: Uuid, parent: Uuid) Failure!store.Manifest {
    var import: Import = blk: {
        var change = try model.store.lockForChange();
        defer change.end();
        break :blk try .begin(givenFor(model, io), &change, .{
            .version = id,
            .vdisk = StoreModel.vdisk,
            .parent = parent,
            .number = 1,
            .pad = false,
            .stamp = undefined,
            .source_size = undefined,
            .root_level = undefined,
        });
    };
    defer import.deinit();
    return end(model, &import);
}

/// Others change the store while the image is read.
fn end(model: *StoreModel, import: *Import) Failure!store.Manifest {
    model.meanwhile = .{ .chances = meanwhile_max };
    defer model.meanwhile = .{};
    const is_read = import.read();
    if (model.meanwhile.problem) |problem| return problem;
    try is_read;
    model.meanwhile.chances = 0;
    var change = try model.store.lockForChange();
    defer change.end();
    return import.finish(&change);
}

/// Lets others change the store during an import: its blocks and those of its parent must stay.
fn changeMeanwhile(model: *StoreModel) Failure!void {
    if (model.prng.chance(1, 3)) try model.seal();
    if (model.prng.chance(1, 2)) return;
    var change = try model.store.lockForChange();
    defer change.end();
    return collect(model, &change);
}

pub fn collect(model: *StoreModel, change: *store.store_dir.Change) Failure!void {
    var collection: store.collect.Collection = try .begin(model.environment.gpa, change);
    defer collection.end();
    while (try collection.step(32 << 10)) {}
}

/// After a restart: resumes an import or abandons it. Returns true if its version exists.
pub fn goOn(model: *StoreModel, id: Uuid) Failure!bool {
    const io = model.environment.io orelse return false;
    const checkpoint = Checkpoint.read(model.sim.files(), id) catch |err|
        return if (err == error.NoImport) false else err;
    if (model.prng.chance(1, 3)) return false;
    var import: Import = blk: {
        var change = try model.store.lockForChange();
        defer change.end();
        if (model.prng.chance(1, 2)) try collect(model, &change);
        break :blk try .proceed(givenFor(model, io), &change, checkpoint);
    };
    defer import.deinit();
    try import.read();
    var change = try model.store.lockForChange();
    defer change.end();
    _ = try import.finish(&change);
    return true;
}

/// An abandoned import would block the garbage collection.
pub fn forget(model: *StoreModel) Failure!void {
    const files = model.sim.files();
    while (try store.import_checkpoint.next(files, null)) |id| try Checkpoint.remove(files, id);
    try store.import_checkpoint.tidy(files);
}

fn givenFor(model: *StoreModel, io: std.Io) Import.Options {
    return .{
        // Its pieces are larger than everything else, and freed at the end.
        .gpa = std.heap.smp_allocator,
        .io = io,
        .source = .{
            .context = model,
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = model.geometry.diskSize(),
            .is_positional = true,
        },
        .is_canceled = &never,
        .watch = .{ .context = model, .progress = progress, .monotonicUs = monotonicUs },
    };
}

fn read(
    context: *anyopaque,
    buffer: []u8,
    offset: u64,
    _: *u64,
) store.image_source.ReadError!usize {
    const model: *const StoreModel = @ptrCast(@alignCast(context));
    var at: usize = 0;
    while (at < buffer.len) : (at += sector_size) {
        const sector = buffer[at..][0..sector_size];
        store_stamps.fill(sector, model.imageSector(offset + at), (offset + at) / sector_size);
    }
    return buffer.len;
}

fn nextData(_: *anyopaque, offset: u64) ?u64 {
    return offset;
}

fn now(context: *anyopaque) ?ImageSource.Now {
    const model: *const StoreModel = @ptrCast(@alignCast(context));
    return .{ .stamp = .{ .kind = .file, .inode = 1 }, .size = model.geometry.diskSize() };
}

fn progress(context: *anyopaque, _: *const store.import.Progress) void {
    const model: *StoreModel = @ptrCast(@alignCast(context));
    if (model.meanwhile.chances == 0 or model.meanwhile.problem != null) return;
    model.meanwhile.chances -= 1;
    changeMeanwhile(model) catch |err| {
        model.meanwhile.problem = err;
    };
}

fn monotonicUs() u64 {
    clock_us += std.time.us_per_min;
    return clock_us;
}
