//! What is wrong with this edge's disks. Whoever notices a problem sets it, from any thread, and
//! clears it when it is over. `/healthz`, the metrics and the heartbeat show what is set. An edge
//! with a problem serves: this file only tells.

const std = @import("std");
const log = @import("log.zig");

/// The names are those of the heartbeat, `/healthz` and the metrics.
pub const Problem = enum(u5) {
    /// The data directory.
    data_unwritable,
    data_low_space,
    data_replaced,
    epoch_not_kept,
    boots_not_kept,
    leases_not_kept,
    reports_not_kept,
    stream_key_not_kept,
    seal_key_not_kept,
    other_files_not_kept,
    /// The directory of vDisks and write caches.
    store_unwritable,
    store_low_space,
    store_replaced,
    store_damaged,
    store_failing,
    /// Either.
    disk_stalled,

    /// What it means, and what a person does about it.
    pub fn sentence(problem: Problem) []const u8 {
        return switch (problem) {
            .data_unwritable => "the data directory is read-only or its disk fails. " ++
                "Devices boot; after a restart the edge lacks what happened meanwhile. " ++
                "Mount it writable, or replace the disk",
            .data_low_space => "the file system of the data directory is almost full. " ++
                "Free some space there",
            .data_replaced => "the path of the data directory leads elsewhere: it was removed, " ++
                "or another file system is mounted there. The edge uses the former one until " ++
                "it is restarted",
            .epoch_not_kept => "the number of this start cannot be written. The edge has " ++
                "chosen a higher one by its clock, and retries",
            .boots_not_kept => "boots.journal cannot be written: after a restart the edge " ++
                "lacks boots, and their devices have to restart. Free some space in the data " ++
                "directory, or replace its disk",
            .leases_not_kept => "leases cannot be written: after a restart the edge may lease " ++
                "an address twice. Free some space in the data directory, or replace its disk",
            .reports_not_kept => "reports find no space: they are lost, and declared as lost. " ++
                "Free some space in the data directory, or replace its disk",
            .stream_key_not_kept => "stream.key cannot be read or written: devices that run " ++
                "now have to restart after the edge does",
            .seal_key_not_kept => "seal.key cannot be read or written: after a restart the edge " ++
                "needs a new state of the control plane",
            .other_files_not_kept => "some files of the data directory cannot be written. " ++
                "Free some space there, or replace its disk",
            .store_unwritable => "the store is read-only or its disk fails: devices whose " ++
                "writes are kept at this edge cannot write",
            .store_low_space => "the file system of the store is almost full: write caches " ++
                "take no new blocks. Free some space there",
            .store_replaced => "the path of the store leads elsewhere: it was removed, or " ++
                "another file system is mounted there. The edge uses the former one until it is " ++
                "restarted",
            .store_damaged => "blocks of versions or write caches are damaged or unreadable. " ++
                "The log names them",
            .store_failing => "blocks of the store are damaged again and again, so they are not " ++
                "repaired from other edges any more. Replace its disk",
            .disk_stalled => "a disk of this edge has not answered for ten seconds",
        };
    }
};

const Bits = u32;
pub const count = @typeInfo(Problem).@"enum".field_names.len;

var bits: std.atomic.Value(Bits) = .init(0);

fn bitOf(problem: Problem) Bits {
    return @as(Bits, 1) << @backingInt(problem);
}

/// Writes a line to the log at each change.
pub fn set(problem: Problem, is_there: bool) void {
    const bit = bitOf(problem);
    const before = if (is_there) bits.fetchOr(bit, .monotonic) else bits.fetchAnd(~bit, .monotonic);
    if ((before & bit != 0) == is_there) return;
    if (is_there)
        log.info("Degraded ({t}): {s}.", .{ problem, problem.sentence() })
    else
        log.info("No longer degraded ({t}).", .{problem});
}

pub fn has(problem: Problem) bool {
    return bits.load(.monotonic) & bitOf(problem) != 0;
}

pub const Names = struct {
    buffer: [count][]const u8 = undefined,
    size: usize = 0,

    pub fn slice(names: *const Names) []const []const u8 {
        return names.buffer[0..names.size];
    }
};

/// Returns the names of what is wrong now.
pub fn list() Names {
    var names: Names = .{};
    for (std.enums.values(Problem)) |problem| if (has(problem)) {
        names.buffer[names.size] = @tagName(problem);
        names.size += 1;
    };
    return names;
}

test "a problem is listed from when it is set until it is cleared" {
    try std.testing.expectEqual(0, list().size);
    set(.leases_not_kept, true);
    set(.leases_not_kept, true);
    set(.store_low_space, true);
    const names = list();
    try std.testing.expectEqual(2, names.size);
    try std.testing.expectEqualStrings("leases_not_kept", names.slice()[0]);
    set(.leases_not_kept, false);
    try std.testing.expect(!has(.leases_not_kept) and has(.store_low_space));
    set(.store_low_space, false);
    try std.testing.expectEqual(0, list().size);
}
