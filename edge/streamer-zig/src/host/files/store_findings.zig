//! What the worker of the store has found out, for the packet loop and the metrics: how many
//! versions the store has, which of them are damaged, and that it has others than before.

const std = @import("std");
const base = @import("base");
const core = @import("core");

pub const StoreFindings = @This();

io: std.Io,
mutex: std.Io.Mutex = .init,
current: Figures = .{},
damaged: Damaged = .empty,
/// Grows with each change.
revision: std.atomic.Value(u64) = .init(0),
/// Grows when versions have other manifests, and so their disks other places.
replaced: std.atomic.Value(u64) = .init(0),
/// Bytes of the disks that are packed again, and how much of them is done; 0 and 0: none are.
packing_done: std.atomic.Value(u64) = .init(0),
packing_total: std.atomic.Value(u64) = .init(0),
/// Of the worker alone: what it has published.
published_hash: u64 = 0,

/// Further ones count as whole.
const damaged_max = 256;
const Damaged = base.BoundedArray(base.Uuid, damaged_max);

pub const Figures = struct { versions: u64 = 0, damaged: u64 = 0, is_known: bool = false };

/// Takes what the worker knows now.
pub fn publish(findings: *StoreFindings, inventory: *const core.uplink.StoreInventory) void {
    if (!inventory.is_known) return;
    var damaged: Damaged = .empty;
    var hash: u64 = inventory.count + 1;
    for (inventory.versions[0..inventory.count]) |*version| {
        const is_damaged = inventory.isDamaged(version);
        if (is_damaged) damaged.append(version.version_id) catch {};
        const id = &version.version_id.bytes;
        hash = base.mix(hash ^ std.mem.readInt(u64, id[0..8], .little), 0);
        hash = base.mix(hash ^ std.mem.readInt(u64, id[8..16], .little), @intFromBool(is_damaged));
    }
    if (hash == findings.published_hash) return;
    findings.published_hash = hash;
    findings.mutex.lockUncancelable(findings.io);
    defer findings.mutex.unlock(findings.io);
    findings.current =
        .{ .versions = inventory.count, .damaged = inventory.damagedCount(), .is_known = true };
    findings.damaged = damaged;
    _ = findings.revision.fetchAdd(1, .release);
}

pub fn setPacking(findings: *StoreFindings, done_bytes: u64, total_bytes: u64) void {
    findings.packing_done.store(done_bytes, .monotonic);
    findings.packing_total.store(total_bytes, .monotonic);
}

/// Versions that are open may be opened again, so that their former places are freed.
pub fn tellReplaced(findings: *StoreFindings) void {
    _ = findings.replaced.fetchAdd(1, .release);
}

pub fn figures(findings: *StoreFindings) Figures {
    findings.mutex.lockUncancelable(findings.io);
    defer findings.mutex.unlock(findings.io);
    return findings.current;
}

pub fn isDamaged(findings: *StoreFindings, id: base.Uuid) bool {
    findings.mutex.lockUncancelable(findings.io);
    defer findings.mutex.unlock(findings.io);
    for (findings.damaged.constSlice()) |known| if (known.eql(id)) return true;
    return false;
}

const testing = std.testing;

test "a change of the store's versions or of their damage is published once" {
    var inventory: core.uplink.StoreInventory = try .init(testing.allocator);
    defer inventory.deinit(testing.allocator);
    var findings: StoreFindings = .{ .io = testing.io };
    findings.publish(&inventory);
    try testing.expectEqual(0, findings.revision.load(.acquire));
    const id: base.Uuid = .fromRandom(@splat(1));
    inventory.set(&.{.{
        .version_id = id,
        .state = .present,
        .root = @splat(1),
        .own_bytes = 1,
        .shared_bytes = 0,
        .reclaimable_bytes = 0,
    }}, false);
    for (0..2) |_| {
        findings.publish(&inventory);
        try testing.expectEqual(1, findings.revision.load(.acquire));
        try testing.expect(!findings.isDamaged(id));
    }
    inventory.note(.{ .id = id, .unixMs = 1, .isDamaged = true });
    findings.publish(&inventory);
    try testing.expectEqual(2, findings.revision.load(.acquire));
    try testing.expect(findings.isDamaged(id));
    const expected: Figures = .{ .versions = 1, .damaged = 1, .is_known = true };
    try testing.expectEqual(expected, findings.figures());
    inventory.note(.{ .id = id, .unixMs = 2, .isDamaged = false });
    findings.publish(&inventory);
    try testing.expectEqual(3, findings.revision.load(.acquire));
    try testing.expect(!findings.isDamaged(id));
}
