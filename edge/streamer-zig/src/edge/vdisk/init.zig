//! `bootfarm-edge vdisk init`: makes a store.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const open_store = @import("open_store.zig");
const command = @import("command.zig");
const Uuid = base.Uuid;

const Options = struct {
    store: ?[]const u8 = null,
    organization: ?Uuid = null,
    beside_files: bool = false,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const path = options.store orelse
        return call.complaint.set("vdisk init needs --store DIR, where the store is to be.", .{});
    std.Io.Dir.cwd().createDirPath(call.init.io, path) catch
        return call.complaint.set("The directory {s} cannot be made; choose one that this user may make.", .{path});
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.complaint.set("The store directory {s} {s}.", .{ path, store_module.files.sentence(err) });
    defer on.close();
    var random: [48]u8 = undefined;
    host.sys.random(&random);
    const made: store_module.store_dir.Made = .{
        .id = .fromRandom(random[0..16].*),
        .organization = options.organization orelse .zero,
        .seed = random[16..48].*,
        .beside_files = options.beside_files,
    };
    store_module.Store.make(on.files(), made) catch |err| switch (err) {
        error.Exists => return call.complaint.set("There is a store in {s} already.", .{path}),
        else => |other| return open_store.complainOf(path, other, call.complaint),
    };
    var buffer: [256]u8 = undefined;
    const text = if (options.json)
        std.mem.print(&buffer, "{{\"store\":\"{f}\"}}\n", .{made.id})
    else
        std.mem.print(&buffer, "made store {f}\n", .{made.id});
    call.terminal.out(text catch unreachable);
    return 0;
}
