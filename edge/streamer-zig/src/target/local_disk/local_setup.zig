//! Opens the write cache on a local disk, as the edge has requested; or reports why it cannot,
//! which ends the boot: a machine that used only its memory, or wrote to its edge, would have
//! another capacity than was chosen for it.

const std = @import("std");
const core = @import("core");
const marked_partition = @import("wire").marked_partition;
const say = @import("../console.zig").say;
const marked_disk = @import("marked_disk.zig");
const RamCache = @import("../ram_cache.zig");
const LocalCache = @import("local_cache.zig");
const LocalDisk = core.target.local_disk_order.LocalDisk;

/// Share of the machine's memory for the map.
const memory_part = 8;

pub const Refusal = union(enum) {
    disk: marked_disk.OpenFailure,
    no_memory,

    /// At most 64 characters.
    pub fn format(refusal: *const Refusal, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        switch (refusal.*) {
            .disk => |*failure| try failure.format(writer),
            .no_memory => try writer.writeAll("no memory for the map of the local disk"),
        }
    }

    /// For a person in front of the machine.
    pub fn sayAdvice(refusal: *const Refusal) void {
        switch (refusal.*) {
            .disk => say(
                "the write cache of this machine needs a partition of a local disk: sgdisk -n 0:0:+20G -c 0:{s} /dev/DISK",
                .{marked_partition.name},
            ),
            .no_memory => say(
                "the write cache of this machine needs 32 bytes of memory for each 4 KiB of the local disk",
                .{},
            ),
        }
    }
};

pub const OpenResult = union(enum) { cache: LocalCache, refusal: Refusal };

/// The partition stays open as long as a process has it.
pub fn make(order: LocalDisk, ram: *const RamCache) OpenResult {
    const opened = switch (marked_disk.open()) {
        .opened => |opened| opened,
        .failure => |failure| return .{ .refusal = .{ .disk = failure } },
    };
    const cache = LocalCache.init(.{
        .fd = opened.fd,
        .size = opened.size,
        .limit = order.limit_bytes,
        .memory_max = RamCache.memoryBytes() / memory_part,
        .ram = ram,
    }) catch return .{ .refusal = .no_memory };
    say("writes that do not fit in memory go to {s}: {d} MiB", .{
        opened.name.slice(), cache.sizeBytes() >> 20,
    });
    return .{ .cache = cache };
}
