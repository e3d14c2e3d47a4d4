//! Tests boot profiles on a real directory: learned, kept, handed out, dropped. The worker runs
//! when a test says so.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const profile_files = @import("profile_files.zig");
const profile_worker = @import("profile_worker.zig");
const profiles_module = @import("profiles.zig");
const testing = std.testing;
const gpa = testing.allocator;

const Event = profiles_module.Event;
const Job = profiles_module.Job;
const Profiles = profiles_module.Profiles(ProfileWorld);
const Worker = profile_worker.ProfileWorker(ProfileWorld);

const Uuid = base.Uuid;

const version_id: Uuid = .{ .bytes = @splat(0x41) };

/// The agent's `Io` and the worker's world.
const ProfileWorld = struct {
    on: store.LinuxFiles,
    worker: Worker,
    jobs: base.BoundedArray(Job, 64) = .empty,
    events: std.ArrayList(Event) = .empty,
    /// The worker has enough to do.
    is_busy: bool = false,
    told: core.profile.Inventory = .{},
    changes: u32 = 0,
    lines: u32 = 0,

    pub fn startProfileJob(world: *ProfileWorld, job: Job) bool {
        if (world.is_busy) return false;
        world.jobs.append(job) catch return false;
        return true;
    }

    pub fn takeProfileEvent(world: *ProfileWorld) ?Event {
        return if (world.events.items.len == 0) null else world.events.orderedRemove(0);
    }

    pub fn files(world: *ProfileWorld) store.Files {
        return world.on.files();
    }

    pub fn unixMs(_: *ProfileWorld) u64 {
        return 1_795_000_000_000;
    }

    pub fn log(world: *ProfileWorld, comptime _: []const u8, _: anytype) void {
        world.lines += 1;
    }

    pub fn send(world: *ProfileWorld, event: Event) void {
        world.events.append(gpa, event) catch unreachable;
    }

    pub fn openStore(_: *ProfileWorld) ?store.Store {
        return null;
    }

    pub fn closeStore(_: *ProfileWorld, _: *store.Store) void {}

    pub fn warm(_: *ProfileWorld, _: Uuid) void {}
    pub fn onLearned(_: *ProfileWorld, _: Uuid) void {}

    pub fn onInventory(world: *ProfileWorld, inventory: *const core.profile.Inventory) void {
        world.told = inventory.*;
        world.changes += 1;
    }
};

const ProfileFixture = struct {
    tmp: testing.TmpDir,
    world: *ProfileWorld,
    profiles: Profiles,
    boots: u8 = 0,

    fn init() !ProfileFixture {
        const tmp = testing.tmpDir(.{ .iterate = true });
        var site: ProfileFixture = .{ .tmp = tmp, .world = undefined, .profiles = undefined };
        try site.start();
        return site;
    }

    fn start(site: *ProfileFixture) !void {
        site.world = try gpa.create(ProfileWorld);
        site.world.* = .{ .on = .fromFd(site.tmp.dir.handle), .worker = undefined };
        site.world.worker = .{ .world = site.world, .gpa = gpa };
        site.profiles = try .init(gpa, site.world, .{});
    }

    fn end(site: *ProfileFixture) void {
        site.profiles.takeEvents();
        site.profiles.deinit();
        site.world.events.deinit(gpa);
        gpa.destroy(site.world);
    }

    fn deinit(site: *ProfileFixture) void {
        site.end();
        site.tmp.cleanup();
    }

    fn restart(site: *ProfileFixture) !void {
        site.end();
        try site.start();
        site.profiles.want(version_id, 1);
        site.doAll();
    }

    fn files(site: *ProfileFixture) store.Files {
        return site.world.files();
    }

    /// Runs the worker, and takes what it has done.
    fn doAll(site: *ProfileFixture) void {
        for (site.world.jobs.constSlice()) |job| site.world.worker.run(job);
        site.world.jobs.clear();
        site.profiles.takeEvents();
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
            .version = .v3,
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
        site.doAll();
    }

    fn expectHanded(site: *ProfileFixture, mac: [3]u8, expected: []const wire.profile.Unit) !void {
        const made = site.boot(mac);
        const size = site.profiles.sizeFor(&made);
        var document: [wire.profile.document_size_max]u8 = undefined;
        if (expected.len == 0) return testing.expectEqual(0, size);
        // In pieces, as a device fetches it.
        var at: u32 = 0;
        while (at < size) : (at += 512) {
            const rest = site.profiles.documentFrom(&made, at);
            const piece = @min(512, rest.len);
            @memcpy(document[at..][0..piece], rest[0..piece]);
        }
        const units = try wire.profile.openDocument(document[0..size]);
        try testing.expectEqual(expected.len, units.count());
        for (expected, 0..) |unit, index| try testing.expectEqual(unit, units.at(@intCast(index)));
    }
};

fn random(buffer: []u8) void {
    testing.io.random(buffer);
}

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
    try testing.expectEqual(3, profile_files.count(site.files(), version_id));
    try testing.expectEqual(2, site.profiles.figures.boots);
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
    site.doAll();
    try site.expectHanded(amber, &.{
        .{ .index = 32, .blocks = 1 }, .{ .index = 0, .blocks = 0x30 },
    });
    const figures = site.profiles.figures;
    try testing.expectEqual(32768, figures.ahead_bytes);
    try testing.expectEqual(8192, figures.used_bytes);

    var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const failing = site.boot(birch);
    site.profiles.begin(&failing, .device_ram);
    site.profiles.onRead(&ProfileFixture.read(&failing, .demand, 5 << 20, 4096));
    // The boot is no longer in any table.
    site.profiles.tick(&table);
    site.profiles.finish(failing.identity.id);
    site.doAll();
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
    const files = site.files();
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
    try testing.expectEqual(0, profile_files.count(site.files(), null));
    site.bootReading(amber, &.{4});
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 16 }});
}

test "boots beyond the recording capacity are served as well, and further classes share the profile of all" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    for (0..profiles_module.recordings_max + 3) |_| {
        const made = site.boot(amber);
        site.profiles.begin(&made, .device_ram);
        site.profiles.onRead(&ProfileFixture.read(&made, .demand, 0, 4096));
    }
    for (0..site.boots) |index| site.profiles.finish(.fromRandom(@splat(@intCast(index + 1))));
    site.doAll();
    try testing.expectEqual(profiles_module.recordings_max, site.profiles.figures.boots);
    for (0..profile_files.classes_max + 4) |index|
        site.bootReading(.{ 2, 9, @intCast(index) }, &.{1});
    try testing.expectEqual(
        profile_files.classes_max + 1,
        profile_files.count(site.files(), version_id),
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
    site.doAll();
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 8 }});
    try testing.expectEqual(1, site.profiles.figures.boots);
}

test "a profile that was cleared beside a running edge leaves its memory and inventory, stays cleared over a restart, and is learned again" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    const profile = try testing.allocator.create(core.profile.BootProfile);
    defer testing.allocator.destroy(profile);
    const buffer = try testing.allocator.create([core.profile.BootProfile.file_size_max]u8);
    defer testing.allocator.destroy(buffer);
    var table: core.boot.Table = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);

    site.bootReading(amber, &.{3});
    try testing.expectEqual(2, site.world.told.count);
    try testing.expectEqual(1_795_000_000_000, site.world.told.slice()[0].learned_unix_ms);
    const files = site.files();
    try testing.expectEqual(
        0,
        try profile_files.clear(files, .fromRandom(@splat(9)), profile, buffer, random),
    );
    try testing.expectEqual(2, try profile_files.clear(files, version_id, profile, buffer, random));
    try testing.expectEqual(1, profile_files.count(files, version_id));
    site.profiles.tick(&table);
    site.doAll();
    try site.expectHanded(amber, &.{});
    try testing.expectEqual(0, site.world.told.count);
    const changes = site.world.changes;
    site.profiles.tick(&table);
    site.doAll();
    try testing.expectEqual(changes, site.world.changes);

    try site.restart();
    try site.expectHanded(amber, &.{});
    site.bootReading(amber, &.{4});
    try site.expectHanded(amber, &.{.{ .index = 0, .blocks = 16 }});
    // Deleting a version deletes its profiles.
    profile_files.removeAll(site.files(), version_id, random);
    try testing.expectEqual(0, profile_files.count(site.files(), version_id));
    site.profiles.tick(&table);
    site.doAll();
    try site.expectHanded(amber, &.{});
}

test "a worker that is behind costs what would be learned, and the next boot is recorded" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    site.world.is_busy = true;
    for (0..profiles_module.recordings_max + 1) |_| site.bootReading(amber, &.{3});
    try testing.expectEqual(0, site.profiles.recording_count);
    site.profiles.want(version_id, 1);
    site.world.is_busy = false;
    // It was not asked, so it is asked again at once.
    site.profiles.want(version_id, 2);
    try testing.expectEqual(1, site.world.jobs.count);
    site.bootReading(amber, &.{3});
    try testing.expectEqual(1, site.profiles.figures.boots);
}

test "a version is loaded again only after a pause: long if it has a profile, short if not" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    const before_us = 1_000_000;
    const waits = struct {
        fn forPause(of: *ProfileFixture, pause_us: u64) !void {
            of.profiles.want(version_id, before_us + pause_us - 1);
            try testing.expectEqual(0, of.world.jobs.count);
            of.profiles.want(version_id, before_us + pause_us);
            try testing.expectEqual(1, of.world.jobs.count);
            of.doAll();
        }
    };
    site.profiles.want(version_id, before_us);
    site.doAll();
    try waits.forPause(&site, profiles_module.look_again_us);
    site.bootReading(amber, &.{3});
    try site.restart();
    site.profiles.loaded[0].at_us = before_us;
    try waits.forPause(&site, profiles_module.want_again_us);
}

test "the document that was used longest ago makes room for one more" {
    var site: ProfileFixture = try .init();
    defer site.deinit();
    const document_of = struct {
        fn version(number: u8) Uuid {
            return .fromRandom(@splat(number));
        }
    };
    site.profiles.deinit();
    site.profiles = try .init(gpa, site.world, .{ .documents = 2 });
    for (1..4) |number| {
        site.world.send(.{ .published = .{
            .version_id = document_of.version(@intCast(number)),
            .key = 0,
            .document = try gpa.dupe(u8, "document"),
        } });
        site.profiles.takeEvents();
        // The first is in use.
        var made = site.boot(amber);
        made.assignment.version_id = document_of.version(1);
        try testing.expectEqual(8, site.profiles.sizeFor(&made));
    }
    var made = site.boot(amber);
    made.assignment.version_id = document_of.version(2);
    try testing.expectEqual(0, site.profiles.sizeFor(&made));
    made.assignment.version_id = document_of.version(3);
    try testing.expectEqual(8, site.profiles.sizeFor(&made));
    // A version without content takes no place.
    site.world.send(.{ .published = .{ .version_id = .zero, .key = 0, .document = &.{} } });
    try testing.expectEqual(8, site.profiles.sizeFor(&made));
    // The offset may lie behind the end.
    try testing.expectEqualStrings("ment", site.profiles.documentFrom(&made, 4));
    try testing.expectEqual(0, site.profiles.documentFrom(&made, 512).len);
}
