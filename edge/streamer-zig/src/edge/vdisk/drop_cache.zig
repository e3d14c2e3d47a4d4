//! `bootfarm-edge vdisk drop-cache`: drops what one device has written and this edge keeps: its
//! persistent write cache, or its private images. Works beside a running edge, but not while the
//! device runs; also with a directory of plain files.

const base = @import("base");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const Uuid = base.Uuid;

pub const Options = struct {
    device: ?Uuid = null,
    /// Drops private images instead of the persistent write cache.
    private: bool = false,
    /// Also names an image whose header cannot be read.
    vdisk: ?Uuid = null,
    /// A cache that does not exist counts as dropped.
    again: bool = false,
};

pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    const device_id = try call.need(options.device, "--device ID");
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            path, store_module.files.sentence(err),
        });
    defer on.close();
    const class: store_module.layer_head.Class =
        if (options.private) .private else .edge_persistent;
    const count = store_module.device_layers.drop(
        on.files(),
        device_id,
        class,
        options.vdisk,
    ) catch |err| return switch (err) {
        error.InUse => call.fail(
            "The device {f} is running, or its edge has heard from it in the last half minute: shut it down first.",
            .{device_id},
        ),
        else => |other| call.fail("The writes of device {f} cannot be removed: the store {s}.", .{
            device_id, store_module.files.sentence(other),
        }),
    };
    if (count == 0 and !options.again) return call.fail(
        "There is no write cache of class {t} for the device {f} in {s}; see bootfarm-edge vdisk caches.",
        .{ class, device_id, path },
    );
    call.print(
        .{ .dropped = count, .device = device_id },
        "dropped the writes of {f}; its next boot starts without them",
        .{device_id},
    );
    return 0;
}
