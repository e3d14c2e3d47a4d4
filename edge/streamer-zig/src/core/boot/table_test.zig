//! Tests of `core.boot.Table`.

const std = @import("std");
const base = @import("base");
const Boot = @import("boot.zig");
const boot_phase = @import("phase.zig");
const BootTable = @import("table.zig");
const Ref = BootTable.Ref;
const runs_us_max = BootTable.runs_us_max;
const search_interval_us = BootTable.search_interval_us;
const testing = std.testing;

fn testBoot(number: u8, now_us: u64) Boot {
    return .init(.{
        .id = .fromRandom(@splat(number)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } },
        .handle = @as(u64, number) << 32 | now_us + 1,
        .token = @splat(number),
    }, .{ .version_id = .zero }, now_us, 1_000);
}

/// Opens the first session of a boot.
const test_open: Boot.Event =
    .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } };

test "a new boot of a device ends none, and is its latest" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const mac = testBoot(1, 0).identity.mac;
    const first = try table.insert(testBoot(1, 0), 0);
    const second = try table.insert(testBoot(1, 50), 50);
    for ([_]Ref{ first, second }) |ref| try testing.expect(!table.get(ref).?.isOver());
    try testing.expectEqual(second, table.findByMac(mac).?);
    try testing.expect(table.isEarlier(first, second));
    try testing.expect(!table.isEarlier(second, first));
    try testing.expectEqual(2, table.active_count);
    _ = try table.insert(testBoot(2, 0), 50);
    var iterator = table.iterateOf(mac);
    try testing.expectEqual(second, iterator.next().?);
    try testing.expectEqual(first, iterator.next().?);
    try testing.expectEqual(null, iterator.next());
    try testing.expectEqual(null, iterator.next());
    // Free slots are no boots of a device.
    var none = table.iterateOf(.fromInt(0));
    try testing.expectEqual(null, none.next());
}

test "a device keeps the boot that it runs in until a later one has proved itself" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const runs = try table.insert(testBoot(1, 0), 0);
    table.apply(runs, 1, test_open);
    table.apply(runs, 2, .{ .ready = .stream });
    table.get(runs).?.changed = false;
    for (10..14) |round| {
        const other = try table.insert(testBoot(1, round), round);
        table.apply(other, round, .nbp_begin);
        table.get(other).?.tick(round + std.time.us_per_day, null);
        table.get(other).?.changed = false;
        try testing.expect(table.get(runs) != null);
        try testing.expectEqual(2, table.count);
    }
    const again = try table.insert(testBoot(1, 20), 20);
    // One whose end is not reported yet stays.
    table.get(runs).?.changed = true;
    table.apply(again, 21, test_open);
    try testing.expectEqual(2, table.count);
    table.get(runs).?.changed = false;
    table.onProved(again);
    try testing.expectEqual(null, table.get(runs));
    try testing.expectEqual(1, table.count);
}

test "a full table keeps a device that was heard within a day, and one that reads by firmware" {
    const day = std.time.us_per_day;
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const streams = try table.insert(testBoot(1, 0), 0);
    table.apply(streams, 0, test_open);
    const reads = try table.insert(testBoot(2, 0), 0);
    table.apply(reads, 0, .{ .stage1_read = .{ .size = 512 } });
    for ([_]Ref{ streams, reads }) |ref| {
        table.apply(ref, 0, .{ .ready = .http });
        table.get(ref).?.changed = false;
    }
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), day - search_interval_us));
    table.apply(streams, 5, .{
        .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 },
    });
    // The older one is heard still.
    _ = try table.insert(testBoot(3, 0), day);
    try testing.expectEqual(null, table.get(reads));
    try testing.expectError(error.Full, table.insert(testBoot(4, 0), day + 4));
    _ = try table.insert(testBoot(4, 0), day + 4 + search_interval_us);
    try testing.expectEqual(null, table.get(streams));
}

test "of disks that firmware reads, a device keeps the latest" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 8 });
    defer table.deinit(testing.allocator);
    var latest: ?Ref = null;
    for (0..4) |round| {
        const ref = try table.insert(testBoot(1, round), round);
        if (latest) |known| try testing.expect(table.get(known) != null);
        try testing.expect(table.count <= 2);
        table.apply(ref, round, .{ .stage1_read = .{ .size = 512 } });
        table.apply(ref, round, .{ .ready = .http });
        table.get(ref).?.changed = false;
        latest = ref;
    }
}

test "a removed boot leaves no trace" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const none = try table.insert(testBoot(1, 0), 0);
    const other = try table.insert(testBoot(2, 0), 0);
    table.remove(none);
    table.remove(none);
    try testing.expectEqual(1, table.count);
    try testing.expectEqual(1, table.active_count);
    try testing.expectEqual(null, table.get(none));
    try testing.expectEqual(null, table.findByMac(testBoot(1, 0).identity.mac));
    const gone = testBoot(1, 0).identity;
    try testing.expectEqual(null, table.findByHandle(gone.handle));
    try testing.expectEqual(null, table.findById(gone.id));
    try testing.expectEqual(null, table.findAt(none.index, gone.id));
    for ([_]u64{ 0, 1 }) |handle| try testing.expectEqual(null, table.findByHandle(handle));
    try testing.expectEqual(other, table.findByMac(testBoot(2, 0).identity.mac).?);
}

test "a full table evicts only boots that are over and reported" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const first = try table.insert(testBoot(1, 0), 0);
    _ = try table.insert(testBoot(2, 0), 0);
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), 0));
    table.supersede(first, 10);
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), 0));
    table.get(first).?.changed = false;
    // The search is not repeated for every request.
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), search_interval_us - 1));
    const third = try table.insert(testBoot(3, 0), search_interval_us);
    try testing.expectEqual(null, table.get(first));
    try testing.expectEqual(third, table.findByHandle(testBoot(3, 0).identity.handle).?);
    try testing.expectEqual(null, table.findByHandle(0));
    try testing.expectEqual(2, table.active_count);
}

test "a full table keeps the boot of a device whose key nobody else knows" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var boot = testBoot(1, 0);
    boot.device_identity = .{ .state = .{ .known = @splat(7) }, .is_only_here = true };
    const keeper = try table.insert(boot, 0);
    const other = try table.insert(testBoot(2, 0), 0);
    for ([_]Ref{ keeper, other }) |ref| {
        table.supersede(ref, 1);
        table.get(ref).?.changed = false;
    }
    const latest = try table.insert(testBoot(3, 0), search_interval_us);
    try testing.expect(table.get(keeper) != null);
    try testing.expectEqual(null, table.get(other));
    table.supersede(latest, 2);
    table.get(latest).?.changed = false;
    // The state has it now.
    table.get(keeper).?.device_identity.noteStated(.{
        .state = .{ .known = @splat(7) },
        .revision = 0,
    });
    for (4..6) |number|
        _ = try table.insert(testBoot(@intCast(number), 0), number * search_interval_us);
    try testing.expectEqual(null, table.get(keeper));
}

test "unregistered devices share a part, and none that runs gives up its slot" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 5 });
    defer table.deinit(testing.allocator);
    table.unregistered_max = 2;
    var refs: [2]Ref = undefined;
    for (&refs, 1..) |*ref, number| {
        var boot = testBoot(@intCast(number), 0);
        boot.is_unregistered = true;
        ref.* = try table.insert(boot, 0);
    }
    for ([_]Boot.Event{ test_open, .{ .ready = .stream } }) |event| table.apply(refs[0], 0, event);
    for (refs) |ref| table.get(ref).?.changed = false;
    var late = testBoot(4, 0);
    late.is_unregistered = true;
    try testing.expectError(error.Full, table.insert(late, 0));
    const later_us = search_interval_us;
    // Registered devices have the other slots, and take none of these.
    for (5..8) |number| _ = try table.insert(testBoot(@intCast(number), 0), 0);
    try testing.expectError(error.Full, table.insert(testBoot(8, 0), runs_us_max - later_us));
    table.apply(refs[1], 0, .{ .failed = .{ .cause = .store_read_error } });
    table.get(refs[1]).?.changed = false;
    _ = try table.insert(late, later_us);
    try testing.expectEqual(null, table.get(refs[1]));
    try testing.expectEqual(2, table.unregistered_count);
    // Whoever has not been heard for a day does not run any more.
    _ = try table.insert(testBoot(8, 0), runs_us_max);
    try testing.expectEqual(null, table.get(refs[0]));
    try testing.expectEqual(1, table.unregistered_count);
}

test "a device in a boot loop takes one slot, and a device that keeps running keeps its own" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 3 });
    defer table.deinit(testing.allocator);
    const runs = try table.insert(testBoot(1, 0), 0);
    table.supersede(runs, 1);
    table.get(runs).?.changed = false;
    for (0..10) |round| {
        const ref = try table.insert(testBoot(2, round), round);
        table.apply(ref, round, .{ .failed = .{ .cause = .store_read_error } });
        table.get(ref).?.changed = false;
    }
    try testing.expect(table.get(runs) != null);
    try testing.expectEqual(2, table.count);
}

test "boots are found by id and, while in progress, by address" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const ref = try table.insert(testBoot(1, 0), 0);
    table.setAddress(table.get(ref).?, .init(10, 0, 0, 9), false);
    try testing.expectEqual(ref, table.findById(.fromRandom(@splat(1))).?);
    try testing.expectEqual(ref, table.findAt(ref.index, .fromRandom(@splat(1))).?);
    try testing.expectEqual(null, table.findAt(ref.index, .fromRandom(@splat(2))));
    try testing.expectEqual(null, table.findAt(ref.index + 1, .fromRandom(@splat(1))));
    try testing.expectEqual(null, table.findAt(ref.index + 1, .zero));
    try testing.expectEqual(null, table.findAt(4, .fromRandom(@splat(1))));
    try testing.expectEqual(ref, table.findActiveByIp(.init(10, 0, 0, 9)).?);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    try testing.expectError(error.None, table.onlyActiveByIp(.init(10, 0, 0, 8)));
    const other = try table.insert(testBoot(2, 0), 0);
    table.setAddress(table.get(other).?, .init(10, 0, 0, 9), false);
    try testing.expectError(error.Several, table.onlyActiveByIp(.init(10, 0, 0, 9)));
    // Of two, the one with a session is meant.
    table.apply(ref, 1, test_open);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    const last = try table.insert(testBoot(3, 0), 0);
    table.setAddress(table.get(last).?, .init(10, 0, 0, 9), false);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    table.apply(last, 1, test_open);
    try testing.expectError(error.Several, table.onlyActiveByIp(.init(10, 0, 0, 9)));
    for ([_]Ref{ other, last }) |over| table.supersede(over, 1);
    table.apply(ref, 5, .{ .failed = .{ .cause = .store_read_error } });
    try testing.expectEqual(null, table.findActiveByIp(.init(10, 0, 0, 9)));
    try testing.expectEqual(ref, table.findById(.fromRandom(@splat(1))).?);
}

test "a table that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var table: BootTable = try .init(gpa, .{ .capacity = 2 });
            table.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}

test "an empty table has no boot, by whatever it is looked for" {
    const gpa = testing.allocator;
    // Memory that an earlier use left behind.
    for ([_]u8{ 0, 1, 0xaa }) |byte| {
        const dirty = try gpa.alloc(u8, 64 << 10);
        @memset(dirty, byte);
        gpa.free(dirty);
        var table: BootTable = try .init(gpa, .{ .capacity = 2 });
        defer table.deinit(gpa);
        try testing.expect(table.isSound());
        for ([_]u64{ 0, 1, 0xaaaa_aaaa_aaaa_aaaa }) |handle|
            try testing.expectEqual(null, table.findByHandle(handle));
        for ([_]u48{ 0, 1, 0xaaaa_aaaa_aaaa }) |mac|
            try testing.expectEqual(null, table.findByMac(.fromInt(mac)));
        try testing.expectEqual(null, table.findActiveByIp(.init(10, 0, 0, 9)));
        for (0..3) |index| for (table.generations) |generation|
            try testing.expectEqual(
                null,
                table.get(.{ .index = @intCast(index), .generation = generation }),
            );
        var iterator = table.iterate();
        try testing.expectEqual(null, iterator.next());
    }
}

test "a device may have the lowest address" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var boot = testBoot(1, 0);
    boot.identity.mac = .fromInt(1);
    const ref = try table.insert(boot, 0);
    try testing.expectEqual(ref, table.findByMac(.fromInt(1)).?);
}

test "of several boots of an address the latest counts, wherever it lies" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 3 });
    defer table.deinit(testing.allocator);
    const ip: base.Ip4 = .init(10, 0, 0, 9);
    const first = try table.insert(testBoot(1, 0), 0);
    const second = try table.insert(testBoot(2, 0), 0);
    for ([_]Ref{ first, second }) |ref| table.setAddress(table.get(ref).?, ip, true);
    try testing.expectEqual(second, table.findActiveByIp(ip).?);
    // The slot of the first is used again.
    table.remove(first);
    const third = try table.insert(testBoot(3, 0), 0);
    try testing.expectEqual(first.index, third.index);
    table.setAddress(table.get(third).?, ip, true);
    try testing.expectEqual(third, table.findActiveByIp(ip).?);
    try testing.expectEqual(null, table.get(first));
}

test "a full table evicts the boot that was inserted first" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var refs: [2]Ref = undefined;
    refs[0] = try table.insert(testBoot(1, 0), 0);
    refs[1] = try table.insert(testBoot(2, 0), 0);
    // The older one may lie behind the younger one.
    for (0..3) |round| {
        const old, const young = .{ refs[round % 2], refs[(round + 1) % 2] };
        for (refs) |ref| {
            table.supersede(ref, 1);
            table.get(ref).?.changed = false;
        }
        const now_us = round * search_interval_us;
        refs[round % 2] = try table.insert(testBoot(@intCast(10 + round), 0), now_us);
        try testing.expectEqual(null, table.get(old));
        try testing.expect(table.get(young) != null);
    }
}

test "a boot from the journal takes the slot of its device's earlier one, and keeps its own" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    var refs: [2]Ref = undefined;
    for (&refs, 0..) |*ref, round| {
        var boot = testBoot(1, round);
        boot.apply(round, test_open);
        boot.apply(round, .{ .ready = .stream });
        boot.changed = false;
        ref.* = try table.insert(boot, round);
    }
    try testing.expectEqual(null, table.get(refs[0]));
    try testing.expect(table.get(refs[1]) != null);
    try testing.expectEqual(1, table.count);
    try testing.expectEqual(0, table.active_count);
    // One that was no more than a candidate when it was read proves itself by a later record.
    var later = testBoot(1, 7);
    later.changed = false;
    const ref = try table.insert(later, 7);
    try testing.expectEqual(2, table.count);
    later.apply(8, test_open);
    table.replace(ref, later);
    try testing.expectEqual(null, table.get(refs[1]));
    try testing.expectEqual(1, table.count);
}

test "the boot that has shown the device's key stays until a later one proves itself" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const key: [32]u8 = @splat(7);
    var refs: [2]Ref = undefined;
    for (&refs, 0..) |*ref, round| {
        var boot = testBoot(1, round);
        boot.device_identity.state = .{ .known = key };
        boot.device_key = .{ .label = .key_known, .key = key };
        boot.apply(round, test_open);
        boot.supersede(round);
        boot.changed = false;
        ref.* = try table.insert(boot, round);
    }
    // It inherits the key, and is none: the device has taken another edge's answer.
    for (2..5) |round| {
        var candidate = testBoot(1, round);
        candidate.device_identity = table.get(table.findByMac(candidate.identity.mac).?).?
            .device_identity;
        const ref = try table.insert(candidate, round);
        try testing.expectEqual(null, table.get(refs[0]));
        if (round < 4) table.remove(ref) else table.apply(ref, round, test_open);
    }
    try testing.expectEqual(null, table.get(refs[1]));
    const last = table.get(table.findByMac(testBoot(1, 0).identity.mac).?).?;
    try testing.expectEqual(key, last.device_identity.state.known);
    try testing.expectEqual(1, table.count);
}

test "a later state replaces its boot, with its handle, and is counted by whether it is over" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const ref = try table.insert(testBoot(1, 0), 0);
    _ = try table.insert(testBoot(2, 0), 0);
    for ([_]bool{ true, true, false, false }, 1..) |is_over, handle| {
        var boot = testBoot(1, 0);
        boot.identity.handle = handle;
        boot.reconnects = handle;
        if (is_over) boot.supersede(1);
        table.replace(ref, boot);
        try testing.expectEqual(handle, table.get(ref).?.reconnects);
        try testing.expectEqual(ref, table.findByHandle(handle).?);
        try testing.expectEqual(null, table.findByHandle(handle - 1));
        try testing.expectEqual(@as(u32, if (is_over) 1 else 2), table.active_count);
    }
}

test "a silent boot ends and is counted, by the table's limit if that is shorter" {
    for ([_]?u64{ null, std.time.us_per_s }, [_]u64{ 60, 1 }) |limit_us, seconds| {
        var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
        defer table.deinit(testing.allocator);
        table.silence_limit_us = limit_us;
        const ref = try table.insert(testBoot(1, 0), 0);
        table.apply(ref, 0, .nbp_begin);
        table.tick(seconds * std.time.us_per_s - 1);
        try testing.expectEqual(1, table.active_count);
        table.tick(seconds * std.time.us_per_s);
        try testing.expectEqual(0, table.active_count);
        try testing.expectEqual(boot_phase.Phase.nbp, table.get(ref).?.outcome.?.silent);
    }
}
