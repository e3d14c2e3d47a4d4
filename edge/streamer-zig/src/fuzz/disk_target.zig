//! Fuzzes partition tables and superblocks, which come from untrusted images.

const std = @import("std");
const wire = @import("wire");
const core = @import("core");
const partition_table = wire.partition_table;
const file_system = wire.file_system;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

pub fn partitions(case: *Case) Violation!bool {
    const prng = &case.prng;
    var head = if (prng.chance(1, 2)) partition_table.testMbr() else partition_table.testGpt();
    // Where tables are: the boot sector's end, GPT's header, its first entries.
    const places = [_][2]u64{ .{ 440, 512 }, .{ 512, 604 }, .{ 1024, 1536 } };
    for (0..@intCast(prng.below(6))) |_| {
        const place = prng.pick([2]u64, &places);
        head[@intCast(prng.between(place[0], place[1] - 1))] = case.byte();
    }
    const found = partition_table.read(&head);
    const disk_size = prng.nextU64();
    for (found.buffer[0..found.count]) |partition| {
        try expect(partition.number > 0, "partitions are numbered from 1");
        try expect(partition.first > 0, "a partition does not begin at the table");
        try expect(partition.size > 0, "a partition is not empty");
        const has = core.loader.disk_fit.available(partition.first, partition.size, disk_size);
        try expect(has <= partition.size, "no more of a partition is there than it has");
        try expect(has <= disk_size, "no more of a partition is there than the disk has");
    }
    return found.count > 0;
}

/// Checks a table with correct checksums and any content: a partition lies between the table and
/// the end of the disk.
pub fn markedPartition(case: *Case) Violation!bool {
    const prng = &case.prng;
    const marked = wire.marked_partition;
    var table: marked.TestTable = .init(&.{
        .{ .name = marked.name, .first = prng.below(1 << 18), .last = prng.below(1 << 18) },
        .{
            .name = prng.pick([]const u8, &.{ "root", marked.name }),
            .first = prng.below(1 << 18),
            .last = prng.below(1 << 18),
        },
    });
    for (0..@intCast(prng.below(3))) |_| table.header[@intCast(prng.between(8, 91))] = case.byte();
    for (0..@intCast(prng.below(3))) |_| table.entries[@intCast(prng.below(256))] = case.byte();
    if (prng.chance(15, 16)) table.seal();
    const found = table.found() orelse return false;
    try expect(found.number > 0, "partitions are numbered from 1");
    try expect(found.size > 0, "a partition is not empty");
    try expect(found.first >= 2 * 512, "a partition does not begin at the table");
    try expect(
        found.first + found.size <= marked.TestTable.geometry.disk_size,
        "a partition ends within its disk",
    );
    return true;
}

pub fn superBlocks(case: *Case) Violation!bool {
    const prng = &case.prng;
    var front = file_system.testExt4(prng.nextU64() >> @intCast(prng.below(64)));
    for (0..@intCast(prng.below(6))) |_| front[@intCast(prng.between(1024, 1400))] = case.byte();
    if (prng.chance(1, 4)) @memcpy(front[0..4], prng.pick([]const u8, &.{ "XFSB", "hsqs" })[0..4]);
    if (prng.chance(1, 2)) prng.fill(front[4..64]);
    var super: [file_system.btrfs_size]u8 = @splat(0);
    prng.fill(super[200..220]);
    if (prng.chance(1, 8)) @memcpy(super[64..72], "_BHRfS_M");
    const btrfs = if (prng.chance(1, 2)) &super else null;
    const found = file_system.identify(.{ .front = &front, .btrfs = btrfs }) orelse return false;
    try expect(found.size > 0, "a file system is not empty");
    const has = prng.nextU64();
    const shortage = core.loader.disk_fit.judge(found, 16, has) orelse {
        try expect(found.size <= has, "what is larger than its disk is told");
        return true;
    };
    try expect(shortage.text().size > 0, "what is missing is told in words");
    return true;
}
