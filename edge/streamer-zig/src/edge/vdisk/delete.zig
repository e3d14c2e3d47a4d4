//! `bootfarm-edge vdisk delete`: deletes a version that nobody has open, or the writes for one that
//! is not sealed, or an interrupted import. `vdisk gc` frees the space.

const agent = @import("agent");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const kept_map = @import("files/kept_map.zig");
const import = @import("import.zig");
const offered = @import("offered.zig");
const Uuid = base.Uuid;

const Checkpoint = store_module.import_checkpoint.Checkpoint;

pub const Options = struct {
    version: ?Uuid = null,
    /// A version that does not exist counts as deleted.
    again: bool = false,
    /// Deletes also what the control plane offers to devices.
    force: bool = false,
    /// The data directory of the edge that serves the store; null: where it usually is.
    data: ?[]const u8 = null,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const id = try call.need(options.version, "--version ID");
    // The control plane knows itself what it offers.
    if (!options.again) try offered.check(call, id, options.data, options.force);
    var change = try call.lock();
    defer change.end();
    const is_found = [_]bool{
        try deleteVersion(call, &change, id),
        try deleteLayer(call, id),
        try deleteImport(call, id),
    };
    if (!options.again and !is_found[0] and !is_found[1] and !is_found[2])
        return call.failVersion(id, error.NotFound);
    call.print(.{ .deleted = id }, "deleted {f}; bootfarm-edge vdisk gc frees its space", .{id});
    return 0;
}

fn deleteVersion(
    call: *const Call,
    change: *store_module.store_dir.Change,
    id: Uuid,
) Call.Error!bool {
    change.delete(id) catch |err| return switch (err) {
        error.NotFound => false,
        error.Needed => call.fail(
            "The version {f} is needed: a private image of a device is based on it; see vdisk caches, and drop that image first.",
            .{id},
        ),
        else => |other| call.failVersion(id, other),
    };
    agent.profile_files.removeAll(call.files(), id, host.sys.random);
    kept_map.remove(call.files(), id);
    return true;
}

fn deleteLayer(call: *const Call, id: Uuid) Call.Error!bool {
    var name: store_module.files.Name = undefined;
    const dir = store_module.pending_seal.layerDir(id, &name);
    if (store_module.WriteLayer.readHead(call.files(), dir)) |_| {} else |err| if (err ==
        error.NotFound) return false;
    store_module.seal.removeLayer(call.files(), id) catch |err| return switch (err) {
        error.InUse => call.failVersion(id, error.Locked),
        else => |other| call.failVersion(id, other),
    };
    return true;
}

fn deleteImport(call: *const Call, id: Uuid) Call.Error!bool {
    try import.checkIdle(call, id);
    Checkpoint.remove(call.files(), id) catch |err| return switch (err) {
        error.NoImport => false,
        else => |other| call.fail("The import {f} {s}.", .{
            id, store_module.import_checkpoint.sentence(other),
        }),
    };
    return true;
}
