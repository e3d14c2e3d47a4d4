//! Fuzzes the store's packed units: what was packed comes back, and a damaged unit is refused or,
//! with a right checksum, fills its blocks and nothing beside them.

const std = @import("std");
const store = @import("store");
const lz4 = @import("codec").lz4;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const unit = store.unit;
const block_size = store.block.block_size;
const guard = 32;
const mark = 0xa5;

var table: lz4.Table = undefined;
var search: lz4.Search = undefined;
var raw: [unit.raw_size_max]u8 = undefined;
var stored: unit.Stored = undefined;
var back: [unit.raw_size_max + guard]u8 = undefined;

pub fn unpacking(case: *Case) Violation!bool {
    const prng = &case.prng;
    const count: usize = @intCast(prng.between(1, unit.blocks_max));
    const bytes = raw[0 .. count * block_size];
    const letters = prng.between(1, 200);
    for (bytes, 0..) |*byte, at| byte.* = if (at >= 100 and prng.chance(2, 3))
        bytes[at - 100]
    else
        @intCast(prng.below(letters));
    const packer: unit.Packer =
        if (prng.chance(1, 2)) .{ .quick = &table } else .{ .small = &search };
    const packed_unit = unit.pack(packer, &stored, bytes) orelse return false;
    @memset(&back, mark);
    const absent = unit.unpack(back[0..bytes.len], packed_unit) catch
        return fuzz_case.violated("what was packed can be unpacked");
    try expect(absent == 0, "nothing is absent");
    try expect(std.mem.eql(u8, bytes, back[0..bytes.len]), "the blocks are the same");
    const some: usize = @intCast(prng.between(1, count));
    @memset(&back, mark);
    const behind = unit.unpackStart(back[0..bytes.len], packed_unit, some) catch
        return fuzz_case.violated("the first blocks of what was packed can be unpacked");
    try expect(behind == unit.allOf(count) & ~unit.allOf(some), "the rest counts as absent");
    const first = some * block_size;
    try expect(std.mem.eql(u8, bytes[0..first], back[0..first]), "the first blocks are the same");
    try expect(std.mem.allEqual(u8, back[bytes.len..], mark), "nothing is written behind the unit");
    const damaged = stored[0..packed_unit.len];
    if (prng.chance(1, 2)) {
        // Noise may take a little more where less repeats.
        const without: unit.BlockSet = @intCast(prng.below(unit.allOf(count)));
        if (unit.packAgain(packer, damaged, bytes, without)) {
            @memset(&back, mark);
            const found = unit.unpack(back[0..bytes.len], damaged) catch
                return fuzz_case.violated("what was packed again can be unpacked");
            try expect(found == without, "the same blocks are absent");
            for (0..count) |index| {
                if (unit.isIn(without, index)) continue;
                const part = bytes[index * block_size ..][0..block_size];
                try expect(
                    std.mem.eql(u8, part, back[index * block_size ..][0..block_size]),
                    "the blocks that are there are the same",
                );
            }
        }
    }
    for (0..@intCast(prng.between(1, 4))) |_|
        damaged[@intCast(prng.below(damaged.len))] = case.byte();
    if (prng.chance(3, 4)) unit.sum(damaged);
    const wanted: usize = @intCast(prng.between(1, unit.blocks_max));
    @memset(&back, mark);
    _ = unit.unpack(back[0 .. wanted * block_size], damaged) catch 0;
    try expect(
        std.mem.allEqual(u8, back[wanted * block_size ..], mark),
        "nothing is written behind the blocks",
    );
    return true;
}
