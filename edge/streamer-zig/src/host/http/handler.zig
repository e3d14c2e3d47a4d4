//! The HTTP server's handler: the agent decides the answers, and disks are read here.

const base = @import("base");
const wire = @import("wire");
const Agent = @import("../edge_io.zig").Agent;
const HeldDisk = @import("../stream/version_disk.zig").HeldDisk;
const http_response = @import("response.zig");
const http_server = @import("server.zig");

/// `paths` must stay where it is.
pub fn of(paths: *Agent.HttpPaths) http_server.Handler {
    return .{
        .context = paths,
        .respond = respond,
        .progress = progress,
        .awaitRecords = awaitRecords,
        .isWritten = isWritten,
        .read = readDisk,
        .hold = holdDisk,
        .markRead = markDiskRead,
    };
}

fn awaitRecords(context: *anyopaque) ?u64 {
    return pathsOf(context).boots.io.awaitRecords();
}

fn isWritten(context: *anyopaque, number: u64) bool {
    return pathsOf(context).boots.io.isWritten(number);
}

fn respond(
    context: *anyopaque,
    peer: base.Ip4,
    request: *const wire.http_request.Request,
    text: *[http_response.text_size_max]u8,
) http_response.Response {
    return pathsOf(context).respond(peer, request, text);
}

fn progress(context: *anyopaque, tag: http_response.Tag, step: http_server.Progress) void {
    pathsOf(context).progress(tag, step);
}

fn readDisk(
    context: *anyopaque,
    version_id: base.Uuid,
    buffer: []u8,
    offset: u64,
    how: http_server.DiskRead,
) http_server.DiskRead.Result {
    const version = pathsOf(context).boots.io.findVersion(version_id) orelse return .failed;
    const disk = version.disk.source();
    switch (how) {
        .now => if (!(disk.readNow(buffer, offset) catch return .failed)) return .waits,
        .wait => disk.read(buffer, offset) catch return .failed,
    }
    return .filled;
}

fn holdDisk(context: *anyopaque, version_id: base.Uuid) ?HeldDisk {
    const version = pathsOf(context).boots.io.findVersion(version_id) orelse return null;
    return HeldDisk.init(&version.disk) catch null;
}

fn markDiskRead(context: *anyopaque, version_id: base.Uuid, offset: u64, size: u64) void {
    const version = pathsOf(context).boots.io.findVersion(version_id) orelse return;
    version.disk.markChecked(offset, size);
}

fn pathsOf(context: *anyopaque) *Agent.HttpPaths {
    return @ptrCast(@alignCast(context));
}
