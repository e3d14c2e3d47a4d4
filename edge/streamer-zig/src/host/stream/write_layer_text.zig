//! Logs events of devices' write layers.

const log = @import("../log.zig");
const Layer = @import("write_layers.zig").Layer;

pub fn tellLost(layer: *const Layer) void {
    log.info("write cache of device {f}: the disk failed; nothing of it is served any more", .{layer.device_id});
}

pub fn tellFull(layer: *const Layer) void {
    log.info("write cache of device {f} is full ({d} MiB): {s}", .{
        layer.device_id,
        layer.inner.head.limit_bytes >> 20,
        switch (layer.full) {
            .stop => "the device's disk is suspended, as chosen; increase the limit and restart the device",
            .read_only => "the device continues, but cannot write until it restarts",
        },
    });
}

/// The layer is within its limit, but something else may have taken the space.
pub fn tellDiskFull(layer: *const Layer) void {
    log.info("write cache of device {f}: the disk of the store is full: {s}", .{
        layer.device_id,
        switch (layer.full) {
            .stop => "the device's disk is suspended, as chosen; free some space there and restart the device",
            .read_only => "the device continues, but cannot write until it restarts",
        },
    });
}

pub fn tellFill(layer: *const Layer, now_us: u64, mark: u8) void {
    const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
    if (mark == 100) return log.info(
        "write cache of device {f} has no free space left ({d} MiB): a write that needs more {s}",
        .{ layer.device_id, limit >> 20, switch (layer.full) {
            .stop => "suspends the device's disk",
            .read_only => "fails, and all writes after it",
        } },
    );
    const seconds = layer.fill.secondsUntilFull(now_us, used, limit) orelse return log.info(
        "write cache of device {f} is {d} % full ({d} of {d} MiB)",
        .{ layer.device_id, mark, used >> 20, limit >> 20 },
    );
    log.info("write cache of device {f} is {d} % full ({d} of {d} MiB); at this rate it is full in {d} min", .{
        layer.device_id, mark, used >> 20, limit >> 20, seconds / 60,
    });
}
