//! `bootfarm-edge vdisk init`: creates a store.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const open_store = @import("open_store.zig");
const Call = @import("subcommand.zig");
const Uuid = base.Uuid;

pub const Options = struct {
    organization: ?Uuid = null,
    beside_files: bool = false,
};

/// Runs before there is a store to open.
pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    std.Io.Dir.cwd().createDirPath(call.init.io, path) catch
        return call.fail(
            "The directory {s} cannot be created; choose one that this user may create.",
            .{path},
        );
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            path, store_module.files.sentence(err),
        });
    defer on.close();
    var random: [48]u8 = undefined;
    host.sys.random(&random);
    const made: store_module.store_dir.StoreOptions = .{
        .id = .fromRandom(random[0..16].*),
        .organization = options.organization orelse .zero,
        .seed = random[16..48].*,
        .beside_files = options.beside_files,
    };
    store_module.Store.make(on.files(), made) catch |err| switch (err) {
        error.Exists => return call.fail("There is already a store in {s}.", .{path}),
        else => |other| return open_store.explain(path, other, call.complaint),
    };
    call.print(.{ .store = made.id }, "made store {f}", .{made.id});
    return 0;
}
