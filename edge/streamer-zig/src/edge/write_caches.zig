//! Prepares, at the start of `serve`, the directory for what devices write at the edge.

const std = @import("std");
const core = @import("core");
const host = @import("host");
const store = @import("store");
const options_module = @import("options.zig");
const Edge = @import("edge.zig");

/// Opens the directory of write caches that are kept at the edge.
pub fn prepare(
    edge: *Edge,
    complaint: *options_module.Complaint,
) (options_module.Error || error{OutOfMemory})!void {
    const options = &edge.options;
    edge.boots.write_cache = options.write_cache;
    const arena = edge.init.arena.allocator();
    const path = options.store orelse
        try std.fs.path.join(arena, &.{ options.data orelse return, "store" });
    if (options.isAlone() and !options.write_cache.class.isAtTheEdge()) return;
    const dir_fd = edge.io.store_fd orelse blk: {
        const dir = std.Io.Dir.cwd().createDirPathOpen(edge.init.io, path, .{}) catch
            return complaint.set("The directory {s} cannot be created or opened.", .{path});
        break :blk dir.handle;
    };
    const files = try edge.gpa.create(store.LinuxFiles);
    files.* = .fromFd(dir_fd);
    const syncs = try edge.gpa.create(host.LayerSyncs);
    syncs.* = host.LayerSyncs.init() catch
        return complaint.set("The system refused what write caches need.", .{});
    const capacity = core.boot.Table.capacity_default;
    edge.boots.caches = host.Agent.WriteCaches.init(
        edge.gpa,
        &edge.io,
        files.files(),
        capacity,
        options.write_cache,
    ) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotWritable => complaint.set(
            "{s} cannot be written, but the devices' write caches are kept there.",
            .{path},
        ),
    };
    syncs.run() catch
        return complaint.set("The threads of write caches cannot be started on this system.", .{});
    edge.loop.stream.syncs = syncs;
    edge.io.syncs = syncs;
}
