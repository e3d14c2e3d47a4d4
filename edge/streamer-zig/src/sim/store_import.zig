//! Imports of the store's model: an image in memory, and a clock that makes each piece due for a checkpoint.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const StoreModel = @import("store_model.zig");

const Checkpoint = store.import_checkpoint.Checkpoint;
const Import = store.import.Import;
const ImageSource = store.image_source.ImageSource;
const Uuid = base.Uuid;
const sector_size = 512;

const Error = store.import.Error || store.import_checkpoint.Error || error{ Locked, RecordDamaged };

var never: std.atomic.Value(bool) = .init(false);
threadlocal var clock_us: u64 = 0;

pub fn begin(model: *StoreModel, io: std.Io, id: Uuid, parent: Uuid) Error!store.Manifest {
    var change = try model.store.lockForChange();
    defer change.end();
    var import: Import = try .begin(givenFor(model, io, &change), .{
        .version = id,
        .vdisk = StoreModel.vdisk,
        .parent = parent,
        .number = 1,
        .pad = false,
        .stamp = undefined,
        .source_size = undefined,
        .root_level = undefined,
    });
    defer import.deinit();
    return import.run();
}

/// After an end: goes on with an import, or gives it up. True: its version is there.
pub fn goOn(model: *StoreModel, id: Uuid) Error!bool {
    const io = model.given.io orelse return false;
    const checkpoint = Checkpoint.read(model.sim.files(), id) catch |err| return if (err == error.NoImport) false else err;
    if (model.prng.chance(1, 3)) return false;
    var change = try model.store.lockForChange();
    defer change.end();
    var import: Import = try .proceed(givenFor(model, io, &change), checkpoint);
    defer import.deinit();
    _ = try import.run();
    return true;
}

/// What nobody goes on with keeps the garbage collection from working.
pub fn forget(model: *StoreModel) Error!void {
    const files = model.sim.files();
    while (try store.import_checkpoint.next(files, null)) |id| try Checkpoint.remove(files, id);
    try store.import_checkpoint.tidy(files);
}

fn givenFor(model: *StoreModel, io: std.Io, change: *store.store_dir.Change) Import.Given {
    return .{
        // Its pieces are larger than all the rest, and gone when it is over.
        .gpa = std.heap.smp_allocator,
        .io = io,
        .change = change,
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

fn read(context: *anyopaque, buffer: []u8, offset: u64, _: *u64) store.image_source.ReadError!usize {
    const model: *const StoreModel = @ptrCast(@alignCast(context));
    var at: usize = 0;
    while (at < buffer.len) : (at += sector_size) {
        const words: *align(1) [sector_size / 8]u64 = @ptrCast(buffer[at..][0..sector_size]);
        words.* = @splat(model.imageSector(offset + at));
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

fn progress(_: *anyopaque, _: *const store.import.Progress) void {}

fn monotonicUs() u64 {
    clock_us += std.time.us_per_min;
    return clock_us;
}
