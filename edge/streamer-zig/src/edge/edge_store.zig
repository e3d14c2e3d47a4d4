//! Opens the store that an edge serves from, at its start, and shares it with the other edges of
//! its site. `start.zig` does so for an enrolled edge, `standalone.zig` for one without a control
//! plane, which has no site.

const std = @import("std");
const host = @import("host");
const store = @import("store");
const Complaint = @import("complaint.zig");
const vdisk_open_store = @import("vdisk/open_store.zig");
const Edge = @import("edge.zig");
const Error = Complaint.Error || error{OutOfMemory};

/// Finishes what a crash interrupted in the store, unless another process changes the store now:
/// that process has already done it.
fn finishCutOff(opened: *store.Store) void {
    var change = opened.lockForChange() catch |err| switch (err) {
        error.Locked, error.ReadOnly, error.Denied => return,
        error.RecordDamaged => return host.log.info(
            "The store's record of a seal that a crash interrupted is damaged: its versions are served, but nothing in it can be changed; restore it from a backup.",
            .{},
        ),
        else => |other| return host.log.info(
            "The recovery of the store after a crash is not finished: its lock file {s}.",
            .{store.files.sentence(other)},
        ),
    };
    change.end();
}

/// Opens the directory where vDisks are, and the store in it if there is one.
pub fn open(edge: *Edge, complaint: *Complaint) Error!void {
    const given = edge.options.store;
    const dir = if (given) |path|
        std.Io.Dir.cwd().openDir(edge.init.io, path, .{}) catch
            return complaint.set("The store directory {s} cannot be read.", .{path})
    else
        edge.data.?.subDir("store") catch
            return complaint.set("{s}/store cannot be created or read.", .{edge.options.data.?});
    edge.io.store_fd = dir.handle;
    edge.store_files = .fromFd(dir.handle);
    edge.store = store.Store.open(
        edge.gpa,
        edge.store_files.files(),
        // 64 MiB of what devices read, taken as they read it.
        .{ .cache_units = 2048 },
    ) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        // Only plain files.
        error.NotAStore => return,
        // Devices boot what other edges have, and the rest of this one works.
        error.DiskFailed => if (!edge.options.isAlone()) {
            host.log.info(
                "The store cannot be read: its disk fails. Restart the edge when it works.",
                .{},
            );
            return host.health.set(.store_unwritable, true);
        } else {
            vdisk_open_store.explain(given.?, error.DiskFailed, complaint) catch {};
            return error.Wrong;
        },
        else => |other| {
            vdisk_open_store.explain(given orelse
                edge.options.data.?, other, complaint) catch {};
            return error.Wrong;
        },
    };
    finishCutOff(&edge.store.?);
    edge.io.versions.store = &edge.store.?;
}

/// Prepares what serves the store to other edges of the site, and gets from theirs: differences,
/// damaged blocks and copies of write caches. After the store's worker; `Edge.run` starts the
/// threads.
pub fn shareWithSite(edge: *Edge) error{OutOfMemory}!void {
    const peers = try edge.gpa.create(host.SitePeers);
    peers.* = .{ .io = edge.init.io };
    edge.site_peers = peers;
    const worker = edge.store_worker.?;
    worker.peers = peers;
    edge.repairer = try .create(edge.gpa, peers, worker.path, worker.wake_fd);
    worker.repairer = edge.repairer;
    edge.peer_server = try .create(edge.gpa, .{
        .peers = peers,
        .store_path = worker.path,
        .repairer = edge.repairer,
        .address = .{ .ip = edge.options.listens.items[0], .port = edge.options.ports.peer },
    });
    edge.layer_copies = try .create(edge.gpa, .{
        .peers = peers,
        .data = &edge.data.?,
        .store_path = worker.path,
        .data_path = edge.options.data.?,
        .reserve_bytes = edge.options.reserve,
    });
    edge.worker.?.repairer = edge.repairer;
    edge.worker.?.copies = edge.layer_copies.?.fetcher;
    edge.loop.stream.setRepairs(edge.repairer.?.repairs());
}
