//! When the edge packs the versions of its store again (`vdisk compress`): once for each set of
//! versions, and not before it has stayed the same for a while, so that whoever has imported a
//! version boots it first. And when it collects what devices had open meanwhile (`vdisk gc`).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");

const StoreInventory = core.uplink.StoreInventory;

pub const StoreUpkeep = @This();

/// Of the versions that were packed last.
done_hash: u64 = 0,
seen_hash: u64 = 0,
seen_ms: u64 = 0,
not_before_ms: u64 = 0,

pub const Work = enum { compress, gc };

/// The versions have stayed the same for so long.
const quiet_ms = 600_000;
/// A version that is damaged, or a disk without space, is not tried all the time.
const failed_ms = 3_600_000;
/// Devices close what they have open when they end.
const collect_interval_ms = 3_600_000;

/// Returns what is due.
pub fn next(
    upkeep: *StoreUpkeep,
    inventory: *const StoreInventory,
    store_path: []const u8,
    now_ms: u64,
) ?Work {
    const hash = hashOf(inventory) orelse return null;
    if (hash != upkeep.seen_hash) {
        upkeep.seen_hash = hash;
        upkeep.seen_ms = now_ms;
    }
    if (now_ms < upkeep.not_before_ms or now_ms - upkeep.seen_ms < quiet_ms) return null;
    if (hash != upkeep.done_hash) return .compress;
    upkeep.not_before_ms = now_ms + collect_interval_ms;
    return if (hasFormer(store_path)) .gc else null;
}

/// A job came first, or the process could not be started.
pub fn postpone(upkeep: *StoreUpkeep, now_ms: u64) void {
    upkeep.not_before_ms = now_ms + quiet_ms;
}

pub fn onEnd(upkeep: *StoreUpkeep, work: Work, is_done: bool, now_ms: u64) void {
    upkeep.not_before_ms = now_ms + @as(u64, if (is_done) quiet_ms else failed_ms);
    switch (work) {
        // What came meanwhile makes another set.
        .compress => if (is_done) {
            upkeep.done_hash = upkeep.seen_hash;
        },
        .gc => upkeep.not_before_ms = now_ms + collect_interval_ms,
    }
}

/// Null: nothing is known, or there is nothing to pack.
fn hashOf(inventory: *const StoreInventory) ?u64 {
    if (!inventory.is_known) return null;
    var hash: ?u64 = null;
    for (inventory.versions[0..inventory.count]) |*version| {
        if (version.is_layer or version.state != .present) continue;
        const id = &version.version_id.bytes;
        hash = base.mix((hash orelse 1) ^ std.mem.readInt(u64, id[0..8], .little), 1);
        hash = base.mix(hash.? ^ std.mem.readInt(u64, id[8..16], .little), 2);
    }
    return hash;
}

/// Somebody has a version open as it was before, or had until now.
fn hasFormer(store_path: []const u8) bool {
    var on = store.LinuxFiles.open(store_path) catch return false;
    defer on.close();
    var name: store.files.Name = undefined;
    return (store.former_versions.next(on.files(), "", &name) catch null) != null;
}

pub const text_size = 16;

pub fn write(upkeep: *const StoreUpkeep, into: *[text_size]u8) []const u8 {
    return std.mem.print(into, "{x:0>16}", .{upkeep.done_hash}) catch unreachable;
}

/// A text that cannot be read makes the work be done again, which is harmless.
pub fn restore(upkeep: *StoreUpkeep, text: []const u8) void {
    upkeep.done_hash = std.fmt.parseInt(u64, text, 16) catch 0;
}

const testing = std.testing;

fn stored(number: u8) core.uplink.store_job.StoredVersion {
    return .{
        .version_id = .fromRandom(@splat(number)),
        .state = .present,
        .own_bytes = 0,
        .shared_bytes = 0,
        .reclaimable_bytes = 0,
    };
}

test "each set of versions is packed once, when it has stayed the same, and also over a restart" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, "versions");
    var buffer: [64]u8 = undefined;
    const path = try std.mem.print(&buffer, ".zig-cache/tmp/{s}", .{&tmp.sub_path});
    var inventory: StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    var upkeep: StoreUpkeep = .{};
    try testing.expectEqual(null, upkeep.next(&inventory, path, quiet_ms));
    inventory.set(&.{}, false);
    try testing.expectEqual(null, upkeep.next(&inventory, path, quiet_ms));
    inventory.set(&.{stored(1)}, false);
    var now_ms: u64 = quiet_ms;
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms));
    inventory.set(&.{ stored(1), stored(2) }, false);
    now_ms += quiet_ms - 1;
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms));
    now_ms += quiet_ms - 1;
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms));
    now_ms += 1;
    try testing.expectEqual(.compress, upkeep.next(&inventory, path, now_ms));
    upkeep.postpone(now_ms);
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms + quiet_ms - 1));
    now_ms += quiet_ms;
    try testing.expectEqual(.compress, upkeep.next(&inventory, path, now_ms));
    upkeep.onEnd(.compress, false, now_ms);
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms + failed_ms - 1));
    now_ms += failed_ms;
    try testing.expectEqual(.compress, upkeep.next(&inventory, path, now_ms));
    upkeep.onEnd(.compress, true, now_ms);
    now_ms += failed_ms;
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms));
    var text: [text_size]u8 = undefined;
    var restarted: StoreUpkeep = .{};
    restarted.restore(upkeep.write(&text));
    try testing.expectEqual(null, restarted.next(&inventory, path, 0));
    try testing.expectEqual(null, restarted.next(&inventory, path, quiet_ms));
    // Until nobody has a version open as it was.
    const name = "versions/01010101-0101-4101-8101-010101010101.former-0";
    try tmp.dir.writeFile(testing.io, .{ .sub_path = name, .data = "" });
    now_ms += collect_interval_ms;
    try testing.expectEqual(.gc, upkeep.next(&inventory, path, now_ms));
    upkeep.onEnd(.gc, true, now_ms);
    try testing.expectEqual(null, upkeep.next(&inventory, path, now_ms + quiet_ms));
    now_ms += collect_interval_ms;
    try testing.expectEqual(.gc, upkeep.next(&inventory, path, now_ms));
    restarted.restore("nonsense");
    try testing.expectEqual(.compress, restarted.next(&inventory, path, 2 * collect_interval_ms));
}
