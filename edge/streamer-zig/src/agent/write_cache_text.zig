//! What an edge logs about write caches.

const Layer = @import("write_caches.zig").Layer;

pub fn lost(io: anytype, layer: *const Layer) void {
    io.log("write cache of device {f}: the disk failed; nothing of it is served any more", .{layer.device_id});
}

pub fn full(io: anytype, layer: *const Layer) void {
    io.log("write cache of device {f} is full ({d} MiB): {s}", .{
        layer.device_id,
        layer.inner.head.limit_bytes >> 20,
        switch (layer.full) {
            .stop => "the device's disk is suspended, as chosen; increase the limit and restart the device",
            .read_only => "the device continues, but cannot write until it restarts",
        },
    });
}

/// The layer is within its limit; other files may have filled the disk.
pub fn diskFull(io: anytype, layer: *const Layer) void {
    io.log("write cache of device {f}: the disk of the store is full: {s}", .{
        layer.device_id,
        switch (layer.full) {
            .stop => "the device's disk is suspended, as chosen; free some space there and restart the device",
            .read_only => "the device continues, but cannot write until it restarts",
        },
    });
}

pub fn fill(io: anytype, layer: *const Layer, now_us: u64, mark: u8) void {
    const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
    if (mark == 100) return io.log(
        "write cache of device {f} has no more capacity ({d} MiB): a write that needs more {s}",
        .{ layer.device_id, limit >> 20, switch (layer.full) {
            .stop => "suspends the device's disk",
            .read_only => "fails, and so do all writes after it",
        } },
    );
    const seconds = layer.fill.secondsUntilFull(now_us, used, limit) orelse return io.log(
        "write cache of device {f} is {d} % full ({d} of {d} MiB)",
        .{ layer.device_id, mark, used >> 20, limit >> 20 },
    );
    io.log("write cache of device {f} is {d} % full ({d} of {d} MiB); at this rate, it is full in {d} min", .{
        layer.device_id, mark, used >> 20, limit >> 20, seconds / 60,
    });
}
