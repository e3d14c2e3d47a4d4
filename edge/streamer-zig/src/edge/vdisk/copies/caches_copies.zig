//! `bootfarm-edge vdisk caches copies`: lists the copies of other edges' write caches that this
//! edge keeps, with their age. Works beside a running edge.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const Call = @import("../subcommand.zig");
const output = @import("../output.zig");
const Uuid = base.Uuid;

const HeldCopy = store_module.HeldCopy;
const names = store_module.copy_names;

pub const Options = struct {};

pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    _ = options;
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            path, store_module.files.sentence(err),
        });
    defer on.close();
    const files = on.files();
    if (!call.is_json) call.print(.{}, "{s:<38}{s:<17}{s:<38}{s:>10}{s:>10}", .{
        "device", "class", "edge", "used", "age",
    });
    var damaged: u32 = 0;
    var walk: Walk = .{ .files = files };
    while (walk.next() catch |err| return call.fail(
        "The copies in {s} cannot be listed: it {s}.",
        .{ path, store_module.files.sentence(err) },
    )) |found| {
        var name: store_module.files.Name = undefined;
        const dir = names.heldDir(found.owner, found.layer, &name);
        var list = HeldCopy.readList(call.gpa, files, dir) catch |err| {
            if (err == error.OutOfMemory) return error.OutOfMemory;
            // It has not come whole yet.
            if (err == error.NotFound) continue;
            damaged += 1;
            call.print(
                .{ .layer = found.layer, .edge = found.owner, .problem = @errorName(err) },
                "{f}  cannot be read ({t})",
                .{ found.layer, err },
            );
            continue;
        };
        defer list.deinit(call.gpa);
        const binding = &list.head.binding;
        const age_s = (host.sys.unixMs() -| list.header.moment_unix_ms) / std.time.ms_per_s;
        call.print(
            .{
                .layer = found.layer,
                .device = binding.device_id,
                .class = binding.class,
                .edge = found.owner,
                .version = binding.version_id,
                .usedBytes = list.ownedBytes(),
                .unixMs = list.header.moment_unix_ms,
            },
            "{f}  {t:<17}{f}  {f:>10}{d:>8} s",
            .{
                binding.device_id,
                binding.class,
                found.owner,
                std.fmt.alt(output.Size{ .bytes = list.ownedBytes() }, .format),
                age_s,
            },
        );
    }
    return if (damaged > 0) Call.exit_failed else 0;
}

pub const Found = struct { owner: Uuid, layer: Uuid };

/// All copies of other edges' layers, also those that have not come whole.
pub const Walk = struct {
    files: store_module.Files,
    edges: ?names.Iterator = null,
    owner: Uuid = .zero,
    layers: ?names.Iterator = null,
    parent: store_module.files.Name = undefined,

    pub fn next(walk: *Walk) store_module.files.Error!?Found {
        if (walk.edges == null) walk.edges = .{ .files = walk.files, .dir = names.held_parent };
        while (true) {
            if (walk.layers) |*layers| if (try layers.next()) |layer|
                return .{ .owner = walk.owner, .layer = layer };
            walk.owner = try walk.edges.?.next() orelse return null;
            const dir = names.heldEdgeDir(walk.owner, &walk.parent);
            walk.layers = .{ .files = walk.files, .dir = dir };
        }
    }
};
