//! The file of a layer that a running edge sends (`caches snapshot`), as a reader: bytes come as
//! they are taken, and nothing is written in between.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const cancel = @import("../cancel.zig");
const Uuid = base.Uuid;

const snapshot_socket = host.snapshot_socket;

pub const EdgeSnapshot = @This();

/// Between two looks at signals.
const patience_s = 1;

fd: i32,
packet: *snapshot_socket.Buffer,
/// What is left of the packet.
rest: []const u8 = "",
/// Why it ended before.
failure: ?snapshot_socket.Failure = null,
reader: std.Io.Reader,

/// It must not move after `reader` was used. `buffer` is the reader's.
pub fn open(
    store_fd: i32,
    layer: Uuid,
    packet: *snapshot_socket.Buffer,
    buffer: []u8,
) snapshot_socket.ConnectError!EdgeSnapshot {
    return .{
        .fd = try snapshot_socket.connect(store_fd, layer, patience_s),
        .packet = packet,
        .reader = .{
            .vtable = &.{ .stream = stream },
            .buffer = buffer,
            .seek = 0,
            .end = 0,
        },
    };
}

pub fn close(snapshot: *EdgeSnapshot) void {
    host.sys.close(snapshot.fd);
    snapshot.* = undefined;
}

fn stream(
    reader: *std.Io.Reader,
    writer: *std.Io.Writer,
    limit: std.Io.Limit,
) std.Io.Reader.StreamError!usize {
    const snapshot: *EdgeSnapshot = @alignCast(@fieldParentPtr("reader", reader));
    while (snapshot.rest.len == 0) {
        if (cancel.is_asked.load(.monotonic)) return error.ReadFailed;
        const next = snapshot_socket.receive(snapshot.fd, snapshot.packet) catch
            return error.ReadFailed;
        switch (next orelse continue) {
            .bytes => |bytes| snapshot.rest = bytes.bytes,
            .end => return error.EndOfStream,
            .failed => |failed| {
                snapshot.failure = failed.failure;
                return error.ReadFailed;
            },
        }
    }
    const wanted = limit.slice(try writer.writableSliceGreedy(1));
    const count = @min(wanted.len, snapshot.rest.len);
    @memcpy(wanted[0..count], snapshot.rest[0..count]);
    snapshot.rest = snapshot.rest[count..];
    writer.advance(count);
    return count;
}
