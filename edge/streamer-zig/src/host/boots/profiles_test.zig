//! Tests boot profiles on a real directory: learned, kept, handed out, dropped.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const profile_files = @import("../files/profile_files.zig");
const BootProfiles = @import("profiles.zig");
const testing = std.testing;

const Uuid = base.Uuid;

const version_id: Uuid = .{ .bytes = @splat(0x41) };

const ProfileFixture = struct {
    tmp: testing.TmpDir,
    profiles: *BootProfiles,
    boots: u8 = 0,

    fn init() !ProfileFixture {
        const tmp = testing.tmpDir(.{ .iterate = true });
        return .{
            .tmp = tmp,
            .profiles = try .create(testing.allocator, testing.io, tmp.dir.handle),
        };
    }

    fn deinit(site: *ProfileFixture) void {
        site.profiles.destroy();
        site.tmp.cleanup();
    }

    fn restart(site: *ProfileFixture) !void {
        site.profiles.destroy();
        site.profiles = try .create(testing.allocator, testing.io, site.tmp.dir.handle);
        site.profiles.want(version_id, 1);
        site.profiles.doAll();
    }

    fn boot(site: *ProfileFixture, mac: [3]u8) core.boot.Boot {
        site.boots += 1;
        var made: core.boot.Boot = .init(.{
            .id = .fromRandom(@splat(site.boots)),
            .mac = .{ .bytes = mac ++ [3]u8{ 0, 0, site.boots } },
            .handle = site.boots,
            .token = @splat(0),
        }, .{ .version_id = version_id }, 0, 0);
        made.facts.client_arch = 7;
        return made;
    }

    fn read(
        of: *const core.boot.Boot,
        kind: wire.ReadKind,
        offset: u64,
        length: u32,
    ) core.stream.Server.ReadRequest {
        return .{
            .boot_id = of.identity.id,
            .version_id = version_id,
            .to = .{ .ip = .zero, .port = 0 },
            .session_id = 1,
            .request_id = 1,
            .kind = kind,
            .offset = offset,
            .length = length,
            .fragment_size = 1440,
            .overhead = 32,
            .write_cache = .device_ram,
            .ranges = .{},
            .first = false,
            .repeated = false,
            .bytes_out = length,
            .packets_out = 1,
        };
    }

    /// Runs a whole boot that reads blocks of 4 KiB in this order.
    fn bootReading(site: *ProfileFixture, mac: [3]u8, blocks: []const u64) void {
        const made = site.boot(mac);
        site.profiles.begin(&made, .device_ram);
        for (blocks) |block| site.profiles.onRead(&read(&made, .demand, block * 4096, 4096));
        site.profiles.finish(made.identity.id);
        site.profiles.doAll();
    }

    fn expectHanded(site: *ProfileFixture, mac: [3]u8, expected: []const wire.profile.Unit) !void {
        const made = site.boot(mac);
        const size = site.profiles.sizeFor(&made);
        var document: [wire.profile.document_size_max]u8 = undefined;
        if (expected.len == 0) return testing.expectEqual(0, size);
        // In pieces, as a device fetches it.
        var at: u32 = 0;
        while (at < size) : (at += 512) site.profiles.copyFor(&made, document[at..][0..512], at);
        const units = try wire.profile.openDocument(document[0..size]);
        try testing.expectEqual(expected.len, units.count());
        for (expected, 0..) |unit, index| try testing.expectEqual(unit, units.at(@intCast(index)));
    }
};

const amber = [3]u8{ 2, 1, 1 };
const birch = [3]u8{ 2, 2, 2 };

test "the next boots are handed what a boot read: first that of their hardware, otherwise that of all" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    try site.expectHanded(amber, &.{});
    site.bootReading(amber, &.{ 80, 8, 9 });
    try site.expectHanded(amber, &.{ .{ .index = 10, .blocks = 1 }, .{ .index = 1, .blocks = 3 } });
    try site.expectHanded(birch, &.{ .{ .index = 10, .blocks = 1 }, .{ .index = 1, .blocks = 3 } });
    site.bootReading(birch, &.{16});
    try site.expectHanded(birch, &.{.{ .index = 2, .blocks = 1 }});
    try site.expectHanded(amber, &.{ .{ .index = 10, .blocks = 1 }, .{ .index = 1, .blocks = 3 } });
    try testing.expectEqual(3, profile_files.count(site.profiles.files.files(), version_id));
    try testing.expectEqual(2, site.profiles.getFigures().boots);
}

test "only what the system used counts, and only of boots that became ready" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    const made = site.boot(amber);
    site.profiles.begin(&made, .edge);
    site.profiles.onRead(&ProfileFixture.read(&made, .ahead, 0, 32768));
    site.profiles.onRead(&ProfileFixture.read(&made, .demand, 1 << 20, 4096));
    var again = ProfileFixture.read(&made, .demand, 2 << 20, 4096);
    again.repeated = true;
    site.profiles.onRead(&again);
    var bytes: [8]u8 = undefined;
    (wire.profile.Unit{ .index = 0, .blocks = 0x30 }).encode(&bytes);
    site.profiles.onUsed(&.{ .boot_id = made.identity.id, .units = .{ .bytes = &bytes } });
    site.profiles.finish(made.identity.id);
    site.profiles.doAll();
    try site.expectHanded(amber, &.{
        .{ .index = 32, .blocks = 1 }, .{ .index = 0, .blocks = 0x30 },
    });
    const figures = site.profiles.getFigures();
    try testing.expectEqual(32768, figures.ahead_bytes);
    try testing.expectEqual(8192, figures.used_bytes);

    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    const failing = site.boot(birch);
    site.profiles.begin(&failing, .device_ram);
    site.profiles.onRead(&ProfileFixture.read(&failing, .demand, 5 << 20, 4096));
    // The boot is no longer in any table.
    site.profiles.tick(&table);
    site.profiles.finish(failing.identity.id);
    site.profiles.doAll();
    try site.expectHanded(birch, &.{
        .{ .index = 32, .blocks = 1 }, .{ .index = 0, .blocks = 0x30 },
    });
}

test "profiles outlive the process; a damaged or foreign one is dropped and learned again" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    site.bootReading(amber, &.{3});
    try site.restart();
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 8 }});
    var damaged: u32 = 0;
    const files = site.profiles.files.files();
    var iterator: profile_files.Iterator = .init(files, null);
    while (iterator.next()) |found| {
        var name: profile_files.Name = undefined;
        const handle =
            try files.open(profile_files.nameOf(found.version, found.key, &name), .write);
        defer files.close(handle);
        try files.write(handle, "x", if (damaged == 0) 40 else 0);
        damaged += 1;
    }
    try testing.expectEqual(2, damaged);
    try site.tmp.dir.writeFile(testing.io, .{ .sub_path = "profiles/somebody-elses", .data = "x" });
    try site.restart();
    try site.expectHanded(amber, &.{});
    try testing.expectEqual(0, profile_files.count(site.profiles.files.files(), null));
    site.bootReading(amber, &.{4});
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 16 }});
}

test "boots beyond the recording capacity are served as well, and further classes share the profile of all" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    for (0..BootProfiles.traces_max + 3) |_| {
        const made = site.boot(amber);
        site.profiles.begin(&made, .device_ram);
        site.profiles.onRead(&ProfileFixture.read(&made, .demand, 0, 4096));
    }
    for (0..site.boots) |index| site.profiles.finish(.fromRandom(@splat(@intCast(index + 1))));
    site.profiles.doAll();
    try testing.expectEqual(BootProfiles.traces_max, site.profiles.getFigures().boots);
    for (0..profile_files.classes_max + 4) |index|
        site.bootReading(.{ 2, 9, @intCast(index) }, &.{1});
    try testing.expectEqual(
        profile_files.classes_max + 1,
        profile_files.count(site.profiles.files.files(), version_id),
    );
    try testing.expect(site.profiles.sizeFor(&site.boot(.{ 2, 9, 200 })) > 0);
}

test "a device whose writes outlive its boots teaches nothing, and is handed what others taught" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    site.bootReading(amber, &.{3});
    for ([_]core.boot.Guest.CacheClass{ .edge_persistent, .private }) |class| {
        const made = site.boot(amber);
        site.profiles.begin(&made, class);
        site.profiles.onRead(&ProfileFixture.read(&made, .demand, 1 << 20, 4096));
        site.profiles.finish(made.identity.id);
    }
    site.profiles.doAll();
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 8 }});
    try testing.expectEqual(1, site.profiles.getFigures().boots);
}

test "a profile that was cleared beside a running edge leaves its memory and inventory, stays cleared over a restart, and is learned again" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    const profile = try testing.allocator.create(core.profile.BootProfile);
    defer testing.allocator.destroy(profile);
    const buffer = try testing.allocator.create([core.profile.BootProfile.file_size_max]u8);
    defer testing.allocator.destroy(buffer);
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    const told = try testing.allocator.create(core.profile.Inventory);
    defer testing.allocator.destroy(told);
    told.* = .{};

    site.bootReading(amber, &.{3});
    var changes = site.profiles.inventoryAfter(0, told).?;
    try testing.expectEqual(2, told.count);
    try testing.expect(told.slice()[0].learned_unix_ms > 1_700_000_000_000);
    const files = site.profiles.files.files();
    try testing.expectEqual(
        0,
        try profile_files.clear(files, .fromRandom(@splat(9)), profile, buffer),
    );
    try testing.expectEqual(2, try profile_files.clear(files, version_id, profile, buffer));
    try testing.expectEqual(1, profile_files.count(files, version_id));
    site.profiles.tick(&table);
    site.profiles.doAll();
    try site.expectHanded(amber, &.{});
    changes = site.profiles.inventoryAfter(changes, told).?;
    try testing.expectEqual(0, told.count);
    site.profiles.tick(&table);
    site.profiles.doAll();
    try testing.expectEqual(null, site.profiles.inventoryAfter(changes, told));

    try site.restart();
    try site.expectHanded(amber, &.{});
    site.bootReading(amber, &.{4});
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 16 }});
    // Deleting a version deletes its profiles.
    profile_files.removeAll(site.profiles.files.files(), version_id);
    try testing.expectEqual(0, profile_files.count(site.profiles.files.files(), version_id));
    site.profiles.tick(&table);
    site.profiles.doAll();
    try site.expectHanded(amber, &.{});
}
