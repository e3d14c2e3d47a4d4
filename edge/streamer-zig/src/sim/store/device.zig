//! The model of a device's writes: for each sector, the contents that it may have after a crash.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const DeviceSnapshot = @import("snapshot.zig");
const assert = std.debug.assert;

const Uuid = base.Uuid;
const WriteLayer = store.WriteLayer;

pub const StoreDevice = @This();

pub const sector_size = 512;
pub const sectors_per_block = store.block.block_size / sector_size;
pub const blocks = 4;
pub const sectors = blocks * sectors_per_block;
/// A stamp that fills a whole sector.
pub const Content = [sectors]u64;

pub const RestartKind = enum { power_cut, end_of_process };

/// The oldest first; the last is the current one.
const History = std.ArrayList(u64);
/// Contents of a sector that is not durable, before a flush is requested.
const history_max = 64;

class: WriteLayer.Class,
device_id: Uuid,
/// For a maintenance layer the version that it becomes; otherwise the version that its device
/// booted.
version_id: Uuid,
/// Name of the layer's directory.
name_id: Uuid,
/// The version below it.
below: Uuid,
possible: [sectors]History = @splat(.empty),
/// The layer was reported as created.
is_made: bool = false,
is_removing: bool = false,
is_open: bool = false,
/// Open as long as the device runs, like in the edge.
version: store.OpenVersion = undefined,
layer: WriteLayer = undefined,
/// A running sync: the number of contents of each sector when it began.
syncing: ?[sectors]u16 = null,
/// In progress.
snapshot: ?*DeviceSnapshot = null,
/// What the layer held at its moment.
snapshot_content: Content = undefined,

pub fn deinit(device: *StoreDevice, gpa: std.mem.Allocator) void {
    assert(!device.is_open);
    for (&device.possible) |*list| list.deinit(gpa);
    device.* = undefined;
}

/// Resets to a version with this content; nothing was written yet.
pub fn begin(
    device: *StoreDevice,
    gpa: std.mem.Allocator,
    below: Uuid,
    holds: *const Content,
) error{OutOfMemory}!void {
    device.below = below;
    device.is_made = false;
    device.is_removing = false;
    device.syncing = null;
    for (&device.possible, holds) |*list, stamp| {
        list.clearRetainingCapacity();
        try list.append(gpa, stamp);
    }
}

pub fn close(device: *StoreDevice, gpa: std.mem.Allocator) void {
    device.syncing = null;
    if (!device.is_open) return;
    device.endSnapshot();
    device.layer.close(gpa);
    device.version.close();
    device.is_open = false;
}

pub fn beginSnapshot(device: *StoreDevice, snapshot: *DeviceSnapshot) DeviceSnapshot.Failure!void {
    assert(device.snapshot == null);
    try snapshot.begin(&device.layer);
    device.snapshot = snapshot;
    for (&device.snapshot_content, &device.possible) |*stamp, *list| stamp.* = list.getLast();
}

pub fn endSnapshot(device: *StoreDevice) void {
    const snapshot = device.snapshot orelse return;
    snapshot.end(&device.layer);
    device.snapshot = null;
}

pub fn isFull(device: *const StoreDevice) bool {
    for (&device.possible) |*list| if (list.items.len >= history_max) return true;
    return false;
}

pub fn note(
    device: *StoreDevice,
    gpa: std.mem.Allocator,
    first: usize,
    count: usize,
    stamp: u64,
) error{OutOfMemory}!void {
    for (device.possible[first..][0..count]) |*list| try list.append(gpa, stamp);
}

/// Returns the current content of a sector.
pub fn now(device: *const StoreDevice, sector: usize) u64 {
    return device.possible[sector].getLast();
}

/// Acknowledges all writes.
pub fn settle(device: *StoreDevice) void {
    for (&device.possible) |*list| {
        list.items[0] = list.getLast();
        list.shrinkRetainingCapacity(1);
    }
}

pub fn isSettled(device: *const StoreDevice) bool {
    for (&device.possible) |*list| if (list.items.len != 1) return false;
    return true;
}

pub fn content(device: *const StoreDevice) Content {
    var stamps: Content = undefined;
    for (&stamps, &device.possible) |*stamp, *list| stamp.* = list.items[0];
    return stamps;
}

pub fn beginSync(device: *StoreDevice) void {
    var marks: [sectors]u16 = undefined;
    for (&marks, &device.possible) |*mark, *list| mark.* = @intCast(list.items.len);
    device.syncing = marks;
}

/// Acknowledges the writes before the sync began.
pub fn endSync(device: *StoreDevice) void {
    const marks = device.syncing.?;
    device.syncing = null;
    for (&device.possible, marks) |*list, mark| {
        const kept = list.items[mark - 1 ..];
        std.mem.copyForwards(u64, list.items[0..kept.len], kept);
        list.shrinkRetainingCapacity(kept.len);
    }
}

/// Returns whether the sector may hold this after a restart, and then fixes it. What a power cut
/// left is on the disk; what is seen after the end of the process alone may still be lost.
pub fn accept(
    device: *StoreDevice,
    gpa: std.mem.Allocator,
    sector: usize,
    found: u64,
    after: RestartKind,
) error{OutOfMemory}!bool {
    const list = &device.possible[sector];
    if (std.mem.findScalar(u64, list.items, found) == null) return false;
    switch (after) {
        .power_cut => {
            list.items[0] = found;
            list.shrinkRetainingCapacity(1);
        },
        .end_of_process => if (list.getLast() != found) try list.append(gpa, found),
    }
    return true;
}

pub fn binding(device: *const StoreDevice, root: [32]u8, disk_size: u64) WriteLayer.Binding {
    return .{
        .class = device.class,
        .device_id = device.device_id,
        .version_id = device.version_id,
        .version_root = root,
        .disk_size = disk_size,
    };
}

pub fn dir(device: *const StoreDevice, into: *store.files.Name) []const u8 {
    return std.mem.print(into, "layers/{f}", .{device.name_id}) catch unreachable;
}
