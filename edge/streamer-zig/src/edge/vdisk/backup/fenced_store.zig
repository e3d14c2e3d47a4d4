//! Keeps everybody from writing to a store that is moved: its change lock and its layers are held
//! while the rest is copied, and afterwards they are not to be had under their names. A running
//! edge reads versions there until it opens the store at its new place. What it acknowledges is
//! never lost: a device whose writes are kept by the edge gets none here any more.

const std = @import("std");
const store_module = @import("store");

const Files = store_module.Files;
const Handle = store_module.files.Handle;
const device_layers = store_module.device_layers;

pub const Error = store_module.files.Error;

const lock_name = "lock";
const moved_lock_name = "lock.moved";
const layers_name = device_layers.parent;
const moved_layers_name = layers_name ++ ".moved";

pub const FencedStore = @This();

gpa: std.mem.Allocator,
files: Files,
/// The data files of the layers.
held: std.ArrayList(Handle) = .empty,

/// Holds all layers that outlive their process. Requires the change lock. `InUse`: a device of this
/// layer runs.
pub fn hold(
    gpa: std.mem.Allocator,
    files: Files,
    in_use: *store_module.layer_head.Head,
) (Error || error{ InUse, OutOfMemory })!FencedStore {
    var fenced: FencedStore = .{ .gpa = gpa, .files = files };
    errdefer fenced.release();
    var walk: device_layers.LayerIterator = .{ .files = files };
    while (try walk.next()) |layer| {
        const head = layer.head catch continue;
        if (!head.binding.class.isDurable()) continue;
        var name: store_module.files.Name = undefined;
        const path = std.mem.print(&name, layers_name ++ "/{s}/data", .{layer.name}) catch continue;
        const handle = files.open(path, .write) catch |err|
            if (err == error.NotFound) continue else return err;
        errdefer files.close(handle);
        if (!try files.tryLock(handle, true)) {
            in_use.* = head;
            return error.InUse;
        }
        try fenced.held.append(gpa, handle);
    }
    return fenced;
}

pub fn release(fenced: *FencedStore) void {
    for (fenced.held.items) |handle| fenced.files.close(handle);
    fenced.held.deinit(fenced.gpa);
    fenced.* = undefined;
}

/// Takes the names of layers and lock away, durably.
pub fn close(fenced: *const FencedStore) Error!void {
    const files = fenced.files;
    try files.rename(layers_name, moved_layers_name);
    // A file in its place: a directory would be made again.
    files.close(try files.create(layers_name));
    try files.rename(lock_name, moved_lock_name);
    try files.syncDir("");
}

/// Undoes `close`, wherever it was interrupted, before the move begins again.
pub fn reopen(files: Files) Error!void {
    try renameBack(files, moved_lock_name, lock_name);
    var name: store_module.files.Name = undefined;
    _ = files.nextName(moved_layers_name, "", &name) catch |err|
        return if (err == error.NotFound) {} else err;
    files.remove(layers_name) catch |err| if (err != error.NotFound) return err;
    try files.rename(moved_layers_name, layers_name);
    try files.syncDir("");
}

fn renameBack(files: Files, from: []const u8, to: []const u8) Error!void {
    files.rename(from, to) catch |err| if (err != error.NotFound) return err;
}
