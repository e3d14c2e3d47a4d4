//! Which version a device's private image lies above: the boot of that device is of that version,
//! whatever others get. It is in the head of the image, which `vdisk caches import` may replace
//! while the device is off, so a thread reads it for each boot, and the boot's script waits.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const mutants = @import("mutants.zig");
const write_caches = @import("write_caches.zig");
const assert = std.debug.assert;

const Assignment = core.boot.Assignment;
const device_layers = store.device_layers;

/// What became of a head that was to be read.
pub const Reading = union(enum) {
    /// `Boots.onImageRead` follows; `busy`: ask again when something has been read.
    waits,
    busy,
    /// Null: there is no image, or it cannot be read.
    version: ?base.Uuid,
};

/// Reads the head of an image, on any thread; null: there is none, or it cannot be read.
pub fn versionBelow(files: store.Files, name: base.Uuid) ?base.Uuid {
    var dir: store.files.Name = undefined;
    const head = store.WriteLayer.readHead(files, device_layers.dirOf(name, &dir)) catch
        return null;
    return if (head.binding.class == .private) head.binding.version_id else null;
}

/// Names the image of a device.
pub fn nameOf(assignment: *const Assignment, mac: base.Mac) base.Uuid {
    return device_layers.nameOf(.{
        .class = .private,
        .device_id = write_caches.deviceIdOf(assignment, mac),
        .vdisk_id = assignment.vdisk_id orelse .zero,
    });
}

/// Returns the assignment of a device whose vDisk is a private image: complete, or to be completed
/// by `onRead`.
pub fn completed(boots: anytype, given: Assignment, mac: base.Mac) Assignment {
    assert(!given.writes);
    var assignment = given;
    assignment.image = .none;
    if (!boots.caches.isAvailable()) return assignment;
    switch (boots.io.readImage(boots.caches.files, nameOf(&given, mac))) {
        .waits => assignment.image = .reading,
        .busy => assignment.image = .to_be_read,
        .version => |version| complete(boots, &assignment, version),
    }
    return assignment;
}

fn complete(boots: anytype, assignment: *Assignment, found: ?base.Uuid) void {
    assignment.image = if (found != null) .own else .none;
    assignment.version_id = found orelse return;
    const state = switch (boots.policy.source) {
        .state => |state| state,
        .nothing, .standalone => return,
    };
    const version = core.boot.assignment.describedVersion(state, assignment.version_id) orelse
        return;
    assignment.loader_files = core.boot.assignment.loaderFilesOf(version);
}

/// A thread has read the head of this image: boots that wait for it have their version.
pub fn onRead(boots: anytype, now_us: u64, name: base.Uuid, found: ?base.Uuid) void {
    var iterator = boots.table.iterate();
    while (iterator.next()) |boot| {
        const assignment = &boot.assignment;
        switch (assignment.image) {
            .none, .own => continue,
            .reading => if (!nameOf(assignment, boot.identity.mac).eql(name)) continue,
            .to_be_read => {
                readAgain(boots, boot);
                continue;
            },
        }
        complete(boots, assignment, found);
        noteKnown(boots, boot, now_us);
    }
}

/// Has a thread read a head that none reads: all had enough to do, or the edge has restarted. The
/// boot's request waits for it.
pub fn readAgain(boots: anytype, boot: *core.boot.Boot) void {
    if (boot.assignment.image != .to_be_read) return;
    boot.assignment = completed(boots, boot.assignment, boot.identity.mac);
    if (boot.assignment.image.isKnown()) noteKnown(boots, boot, boots.io.now());
}

fn noteKnown(boots: anytype, boot: *core.boot.Boot, now_us: u64) void {
    boots.profiles.want(boot.assignment.version_id, now_us);
    boot.changed = true;
    boots.settle(boot);
}
