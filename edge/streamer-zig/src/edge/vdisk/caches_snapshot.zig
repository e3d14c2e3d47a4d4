//! `bootfarm-edge vdisk caches snapshot`: `caches export` of a device that runs. The edge that has
//! its writes open sends the file, as of one moment (host/stream/snapshot_thread.zig); without one
//! they are exported.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const caches_export = @import("caches_export.zig");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const snapshot_socket = host.snapshot_socket;

pub const Options = caches_export.Options;

/// Between two looks at signals.
const patience_s = 1;

pub fn make(call: *const Call, options: *const Options, store_path: []const u8) Call.Error!u8 {
    return caches_export.write(call, options, store_path, receive);
}

fn receive(
    call: *const Call,
    source: *const caches_export.Source,
    into: *std.Io.Writer,
    line: *output.ProgressLine,
) caches_export.SourceError!u64 {
    const device_id = source.device_id;
    const name = source.dir[store_module.device_layers.parent.len + 1 ..];
    const layer = Uuid.parse(name) catch
        return call.fail("The directory {s} of the store is no write cache's.", .{source.dir});
    const fd = snapshot_socket.connect(source.store_fd, layer, patience_s) catch |err|
        return switch (err) {
            error.NotRunning => call.fail(
                "Another process uses the writes of device {f}, and no edge of this machine and release takes snapshots of them: run the command again when it has ended.",
                .{device_id},
            ),
            error.Foreign => call.fail(
                "Another user's program answers in place of the edge: run the command as root, on the edge's machine.",
                .{},
            ),
            error.SystemCallFailed => call.fail("The system refused a unix socket.", .{}),
        };
    defer host.sys.close(fd);
    const buffer = try call.gpa.create(snapshot_socket.Buffer);
    defer call.gpa.destroy(buffer);
    while (true) {
        if (cancel.is_asked.load(.monotonic)) return error.Canceled;
        const next = snapshot_socket.receive(fd, buffer) catch return call.fail(
            "The edge has ended, or does not serve this user: there is no snapshot. Run the command again, as root or as the edge's user.",
            .{},
        );
        switch (next orelse continue) {
            .bytes => |bytes| {
                try into.writeAll(bytes.bytes);
                const done = @min(bytes.done, source.disk_size);
                line.update(.{ .position = done, .size = source.disk_size });
            },
            .end => |end| return end.blocks,
            .failed => |failed| return explain(call, device_id, failed.failure, failed.at),
        }
    }
}

fn explain(
    call: *const Call,
    device_id: Uuid,
    failure: snapshot_socket.Failure,
    at: u64,
) Call.Error {
    return switch (failure) {
        .not_open => call.fail(
            "Another process than the edge uses the writes of device {f}: run the command again when it has ended.",
            .{device_id},
        ),
        .lost => call.fail("The writes of device {f} are missing or truncated.", .{device_id}),
        .damaged => call.fail("The writes of device {f} are damaged.", .{device_id}),
        .newer_format, .unknown_request => call.fail(
            "The edge that runs is of another release than this command; use the same.",
            .{},
        ),
        .rotten => call.fail(
            "The writes of device {f} are damaged: the block at byte {d} has changed on the disk.",
            .{ device_id, at },
        ),
        .ended => call.fail(
            "The device {f} has booted something else in the middle of the snapshot: run the command again.",
            .{device_id},
        ),
        .over_limit => call.fail(
            "The device {f} has overwritten more during the snapshot than is left below the limit of its write cache: run the command when it writes less, or increase the limit.",
            .{device_id},
        ),
        .no_space => call.fail(
            "The store's disk is almost full, and its space is kept for the writes of devices: free some, or write the snapshot to another disk.",
            .{},
        ),
        .too_slow => call.fail(
            "The snapshot took longer than six hours: write it to a faster disk.",
            .{},
        ),
        .out_of_memory => call.fail("The edge has not enough memory for the snapshot.", .{}),
        .disk_failed, _ => call.fail(
            "The edge cannot read the writes of device {f}: its store fails.",
            .{device_id},
        ),
    };
}
