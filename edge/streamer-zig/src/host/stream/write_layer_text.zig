//! What the edge says on its console of devices' write layers.

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
            .stop => "the device's disk stands still, as was chosen; give it more room, and start it again",
            .read_only => "the device goes on, and writes nothing any more until it starts again",
        },
    });
}

/// Within its limit, and somebody else may have taken the room.
pub fn tellDiskFull(layer: *const Layer) void {
    log.info("write cache of device {f}: the disk of the store is full: {s}", .{
        layer.device_id,
        switch (layer.full) {
            .stop => "the device's disk stands still, as was chosen; free some room there, and start it again",
            .read_only => "the device goes on, and writes nothing any more until it starts again",
        },
    });
}

pub fn tellFill(layer: *const Layer, now_us: u64, mark: u8) void {
    const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
    if (mark == 100) return log.info(
        "write cache of device {f} has no more room ({d} MiB): what needs more of it {s}",
        .{ layer.device_id, limit >> 20, switch (layer.full) {
            .stop => "stops the device",
            .read_only => "fails, and all writes after it",
        } },
    );
    const seconds = layer.fill.secondsUntilFull(now_us, used, limit) orelse return log.info(
        "write cache of device {f} is {d} % full ({d} of {d} MiB)",
        .{ layer.device_id, mark, used >> 20, limit >> 20 },
    );
    log.info("write cache of device {f} is {d} % full ({d} of {d} MiB); as it goes, it is full in {d} min", .{
        layer.device_id, mark, used >> 20, limit >> 20, seconds / 60,
    });
}
