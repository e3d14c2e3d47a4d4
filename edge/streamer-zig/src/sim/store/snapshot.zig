//! A snapshot of a layer in the store's model: the file that is made of it, and a device that
//! writes while a block is read.

const std = @import("std");
const store = @import("store");

const Files = store.Files;
const LayerSnapshot = store.LayerSnapshot;
const WriteLayer = store.WriteLayer;
const layer_file = store.layer_file;

pub const DeviceSnapshot = @This();

pub const Failure = layer_file.ExportError || layer_file.ImportError;

/// Its buffers are larger than everything else, and freed at the end.
const gpa = std.heap.smp_allocator;

inner: LayerSnapshot,
file: std.Io.Writer.Allocating,
exporting: layer_file.Export = undefined,
/// Blocks were read and not taken yet.
is_read: bool = false,
/// The files of the simulation, with a device that writes while a block is read.
vtable: Files.VTable,
files: Files,

/// Lets the device write.
pub const Device = struct { context: *anyopaque, write: *const fn (*anyopaque) void };

/// The device that writes when a file is read next.
threadlocal var writing: ?Device = null;
threadlocal var read_then: @FieldType(Files.VTable, "read") = undefined;

pub fn open(io: std.Io, files: Files, dir: []const u8) LayerSnapshot.OpenError!*DeviceSnapshot {
    const snapshot = try gpa.create(DeviceSnapshot);
    errdefer gpa.destroy(snapshot);
    snapshot.* = .{
        .inner = try .openWritten(gpa, io, files, dir, 0),
        .file = .init(gpa),
        .vtable = files.vtable.*,
        .files = files,
    };
    snapshot.vtable.read = readWhileWritten;
    read_then = files.vtable.read;
    snapshot.inner.files.vtable = &snapshot.vtable;
    return snapshot;
}

pub fn begin(snapshot: *DeviceSnapshot, layer: *WriteLayer) Failure!void {
    try snapshot.inner.begin(layer);
    snapshot.exporting = try .begin(&snapshot.file.writer, &snapshot.inner.head);
}

/// The layer is closed, or the snapshot is over.
pub fn end(snapshot: *DeviceSnapshot, layer: *WriteLayer) void {
    snapshot.inner.end(layer);
    snapshot.close();
}

pub fn close(snapshot: *DeviceSnapshot) void {
    snapshot.inner.close();
    snapshot.file.deinit();
    gpa.destroy(snapshot);
}

/// From now on the disk has too little space.
pub fn fillDisk(snapshot: *DeviceSnapshot) void {
    snapshot.inner.copies.?.free_bytes_min = std.math.maxInt(u64);
}

pub fn isDiskFull(snapshot: *const DeviceSnapshot) bool {
    return snapshot.inner.copies.?.free_bytes_min > 0;
}

/// Reads some blocks, while `device` writes, or takes those that were read. Returns whether the
/// file is complete.
pub fn proceed(snapshot: *DeviceSnapshot, device: ?Device) Failure!bool {
    if (snapshot.is_read) {
        snapshot.is_read = false;
        const piece = try snapshot.inner.take() orelse return false;
        try snapshot.exporting.add(&piece);
        return false;
    }
    writing = device;
    defer writing = null;
    snapshot.is_read = try snapshot.inner.read();
    if (snapshot.is_read) return false;
    _ = try snapshot.exporting.end();
    return true;
}

fn readWhileWritten(
    context: *anyopaque,
    handle: Files.Handle,
    buffer: []u8,
    offset: u64,
) store.files.Error!usize {
    if (writing) |device| {
        writing = null;
        device.write(device.context);
    }
    return read_then(context, handle, buffer, offset);
}

/// Makes a layer of the complete file.
pub fn import(snapshot: *DeviceSnapshot, dir: []const u8) Failure!void {
    var reader: std.Io.Reader = .fixed(snapshot.file.written());
    const head: layer_file.FileHead = try .take(&reader);
    _ = try layer_file.importLayer(
        gpa,
        snapshot.files,
        dir,
        &reader,
        &head,
        .fromRandom(@splat(77)),
        .{ .context = snapshot, .call = goOn },
    );
}

fn goOn(_: *anyopaque, _: u64, _: u64) bool {
    return true;
}
