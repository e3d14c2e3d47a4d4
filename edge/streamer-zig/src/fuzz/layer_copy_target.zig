//! Fuzzes lists of copies of write layers, which come from other edges: whatever one says, its
//! areas are in ascending order on the disk of its head, and none is larger than 1 MiB.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const AreaList = store.AreaList;
const Entry = AreaList.Entry;
const layer_head = store.layer_head;

const entries_most = 6;
const body_size_most = layer_head.size + entries_most * @sizeOf(Entry);

pub fn list(case: *Case) Violation!bool {
    const prng = &case.prng;
    const size_most = 8 * AreaList.area_size / 512;
    const disk_size =
        512 * prng.between(1, if (prng.chance(1, 16)) std.math.maxInt(u64) / 512 else size_most);
    var body: [body_size_most]u8 = undefined;
    body[0..layer_head.size].* = layer_head.emit(&.{
        .layer_id = .fromRandom(@splat(1)),
        .binding = .{
            .class = if (prng.chance(1, 2)) .edge_persistent else .private,
            .device_id = .fromRandom(@splat(2)),
            .version_id = .fromRandom(@splat(3)),
            .disk_size = disk_size,
        },
        .limit_bytes = prng.nextU32(),
        .sequence = 0,
    });
    const count: u32 = @intCast(prng.below(entries_most + 1));
    var area: u32 = 0;
    for (0..count) |index| {
        area += @intCast(prng.between(if (prng.chance(1, 16)) 0 else 1, 2));
        body[layer_head.size + index * @sizeOf(Entry) ..][0..@sizeOf(Entry)].* =
            std.mem.toBytes(entryOf(case, area -| 1));
    }
    var size: usize = layer_head.size + count * @sizeOf(Entry);
    const is_damaged = prng.chance(1, 4);
    if (is_damaged) size = case.mutate(&body, size).len;
    var header: AreaList.Header =
        .{ .count = count, .moment_unix_ms = prng.nextU32(), .digest = undefined };
    base.Sha256.hash(body[0..size], &header.digest, .{});
    if (prng.chance(1, 16)) header.digest[0] ^= 1;
    try checkHeader(&header);
    var found = AreaList.of(case.gpa, header, body[0..size]) catch |err| {
        try expect(err != error.OutOfMemory, "a list takes no more memory than its bytes");
        return false;
    };
    defer found.deinit(case.gpa);
    try checkList(&found);
    return true;
}

fn entryOf(case: *Case, area: u32) Entry {
    const prng = &case.prng;
    var entry: Entry = .{ .area = undefined, .owned = @splat(0), .digest = @splat(0) };
    std.mem.writeInt(u32, &entry.area, area, .little);
    if (prng.chance(1, 4)) prng.fill(&entry.owned) else entry.owned[0] = case.byte();
    if (prng.chance(3, 4)) prng.fill(&entry.digest);
    return entry;
}

fn checkHeader(header: *const AreaList.Header) Violation!void {
    const again = AreaList.Header.parse(&header.emit()) catch
        return expect(false, "parse(emit(x)) == x");
    try expect(std.meta.eql(again, header.*), "parse(emit(x)) == x");
}

fn checkList(found: *const AreaList) Violation!void {
    const end = found.areasSize();
    var behind: u64 = 0;
    for (found.entries()) |*entry| {
        try expect(entry.offset() >= behind, "areas ascend");
        behind = entry.offset() + AreaList.area_size;
        try expect(entry.size() > 0, "an area of a list has a block");
        try expect(entry.size() <= AreaList.area_size, "an area has 1 MiB");
        try expect(found.find(entry.index()) == entry, "an area of a list is found in it");
        var at: u32 = 0;
        var blocks: u32 = 0;
        while (entry.run(at, true)) |run| {
            blocks += run.count;
            at = run.block + run.count;
            const last = entry.offset() + @as(u64, at) * AreaList.block_size;
            try expect(last <= end, "no block is behind the end of the disk");
        }
        try expect(blocks == entry.blockCount(), "runs have all blocks");
    }
}
