//! `bootfarm-edge vdisk caches copies`: lists the copies of other edges' write caches that this
//! edge keeps, with their age. Works beside a running edge.

const std = @import("std");
const host = @import("host");
const store_module = @import("store");
const Call = @import("../subcommand.zig");
const output = @import("../output.zig");
const HeldCopy = store_module.HeldCopy;

pub const Options = struct {};

pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    _ = options;
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            path, store_module.files.sentence(err),
        });
    defer on.close();
    const files = on.files();
    if (!call.is_json) call.print(.{}, "{s:<38}{s:<17}{s:<38}{s:>10}{s:>10}  {s}", .{
        "device", "class", "edge", "used", "age", "copy",
    });
    var damaged: u32 = 0;
    var walk: HeldCopy.Walk = .{ .files = files };
    while (walk.next() catch |err| return call.fail(
        "The copies in {s} cannot be listed: it {s}.",
        .{ path, store_module.files.sentence(err) },
    )) |found| {
        var name: store_module.files.Name = undefined;
        var list = HeldCopy.readList(call.gpa, files, found.dir(&name)) catch |err| {
            if (err == error.OutOfMemory) return error.OutOfMemory;
            // It has not come whole yet.
            if (err == error.NotFound) continue;
            damaged += 1;
            const why = switch (err) {
                error.Damaged => "its list has changed on the disk",
                error.NewerFormat => "a later release has made it; update bootfarm-edge",
                else => "the store's disk reports an error, or refuses this user",
            };
            call.print(
                .{ .copy = found.layer_id, .edge = found.owner, .problem = why },
                "the copy {f} of edge {f} cannot be read: {s}",
                .{ found.layer_id, found.owner, why },
            );
            continue;
        };
        defer list.deinit(call.gpa);
        const binding = &list.head.binding;
        const age_s = (host.sys.unixMs() -| list.header.moment_unix_ms) / std.time.ms_per_s;
        call.print(
            .{
                .copy = found.layer_id,
                .device = binding.device_id,
                .class = binding.class,
                .edge = found.owner,
                .version = binding.version_id,
                .usedBytes = list.ownedBytes(),
                .unixMs = list.header.moment_unix_ms,
            },
            "{f}  {t:<17}{f}  {f:>10}{d:>8} s  {f}",
            .{
                binding.device_id,
                binding.class,
                found.owner,
                std.fmt.alt(output.Size{ .bytes = list.ownedBytes() }, .format),
                age_s,
                found.layer_id,
            },
        );
    }
    return if (damaged > 0) Call.exit_failed else 0;
}
