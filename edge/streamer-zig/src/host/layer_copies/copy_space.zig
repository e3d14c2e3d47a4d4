//! Space for copies of write layers: devices' writes come first, so copies leave the reserve of the
//! store's disk free, and a quarter of it on top, as snapshots do.

const DiskWatch = @import("../files/disk_watch.zig");
const file_system = @import("../files/file_system.zig");

/// Tells whether a copy may take so many bytes more. `reserve_bytes`: null for the usual reserve.
pub fn has(store_fd: i32, reserve_bytes: ?u64, bytes: u64) bool {
    const space = file_system.spaceOf(store_fd) catch return false;
    const reserve = reserve_bytes orelse DiskWatch.limitOf(space.total_bytes);
    return space.available_bytes >= reserve +| reserve / 4 +| bytes;
}
