//! Cuts the power at each change of the disk while an edge brings the copy of another edge's write
//! layer up to date: what is there afterwards is the copy of before or the new one, whole, and the
//! transfer continues.

const std = @import("std");
const store = @import("store");
const SimFiles = @import("../kit/sim_files.zig");
const AreaList = store.AreaList;
const HeldCopy = store.HeldCopy;
const testing = std.testing;
const gpa = testing.allocator;

const areas = 5;
/// More than the changes of one transfer.
const cuts_max = 400;
const seeds = 12;

/// What each area has in its second block; null: nothing, 0: zeros.
const Contents = [areas]?u8;

const before: Contents = .{ 'a', 'b', 'c', 0, null };
const after: Contents = .{ 'a', 'x', null, 'd', 0 };

const dir_name = "cache-copies/held/edge/layer";

fn listOf(contents: *const Contents, moment: u64) !AreaList {
    var builder: AreaList.Builder = try .init(gpa, &.{
        .layer_id = .fromBytes(@splat(1)),
        .binding = .{
            .class = .edge_persistent,
            .device_id = .fromBytes(@splat(2)),
            .version_id = .fromBytes(@splat(3)),
            .disk_size = areas * AreaList.area_size,
        },
        .limit_bytes = 1 << 30,
        .sequence = 0,
    });
    defer builder.deinit();
    for (contents, 0..) |content, area| {
        const byte = content orelse continue;
        const block: [AreaList.block_size]u8 = @splat(byte);
        var entry: AreaList.Entry =
            .{ .area = undefined, .owned = @splat(0), .digest = undefined };
        std.mem.writeInt(u32, &entry.area, @intCast(area), .little);
        entry.owned[0] = 2;
        entry.digest = AreaList.digestOf(&entry.owned, &block);
        try builder.add(&entry);
    }
    return builder.finish(moment, 0);
}

/// Fetches as an edge does.
fn fetch(files: store.Files, contents: *const Contents, moment: u64) !void {
    var held: HeldCopy = try .begin(gpa, files, dir_name, try listOf(contents, moment));
    defer held.deinit();
    for (held.list.entries()) |*entry| {
        if (!try held.needs(entry)) continue;
        const block: [AreaList.block_size]u8 = @splat(contents[entry.index()].?);
        try testing.expect(try held.put(entry, &block));
    }
    try held.commit();
}

/// Returns the moment of the copy, which is whole; 0: there is none.
fn wholeMoment(files: store.Files) !u64 {
    try HeldCopy.complete(gpa, files, dir_name);
    var list = HeldCopy.readList(gpa, files, dir_name) catch |err|
        return if (err == error.NotFound) 0 else err;
    defer list.deinit(gpa);
    const moment = list.header.moment_unix_ms;
    const contents = if (moment == 1) &before else &after;
    const handle = try files.open(dir_name ++ "/areas", .read);
    defer files.close(handle);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    for (contents, 0..) |content, area| {
        const entry = list.find(@intCast(area)) orelse {
            try testing.expectEqual(null, content);
            continue;
        };
        const bytes = (try entry.readFrom(files, handle, buffer)).?;
        try testing.expect(entry.isContent(bytes));
        try testing.expectEqual(content.?, bytes[0]);
    }
    return moment;
}

/// Returns whether the transfer ended before the cut. `is_first`: there was no copy before.
fn cutAt(cut: u64, seed: u64, is_first: bool) !bool {
    var sim: SimFiles = try .init(gpa, seed);
    defer sim.deinit();
    const files = sim.files();
    if (!is_first) try fetch(files, &before, 1);
    const former: u64 = if (is_first) 0 else 1;
    sim.stop_after = sim.operations + cut;
    const is_done = if (fetch(files, &after, 2)) |_| true else |_| false;
    sim.crash();
    const moment = try wholeMoment(files);
    try testing.expect(moment == 2 or (moment == former and !is_done));
    // Also in the middle of what the next program does first.
    sim.stop_after = sim.operations + cut % 7;
    fetch(files, &after, 2) catch {};
    sim.crash();
    try testing.expect(try wholeMoment(files) >= moment);
    try fetch(files, &after, 2);
    try testing.expectEqual(2, try wholeMoment(files));
    return is_done;
}

test "a copy is whole after a power cut at any moment of a transfer, and the transfer continues" {
    for ([_]bool{ true, false }) |is_first| {
        var cut: u64 = 0;
        // Until every moment was cut.
        while (cut < cuts_max) : (cut += 1) {
            var done: u32 = 0;
            for (0..seeds) |seed| {
                if (try cutAt(cut, cut * seeds + seed, is_first)) done += 1;
            }
            if (done == seeds) break;
        } else return error.TransferNeverEnds;
    }
}
