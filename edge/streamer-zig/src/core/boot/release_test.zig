//! Tests of release.zig, of the policy and of menus at a release: the golden cases of
//! packages/proto/vectors/releases-v1.json, which also test the API's rule.

const std = @import("std");
const base = @import("base");
const boot_policy = @import("policy.zig");
const desired_state = @import("../uplink/desired_state.zig");

const testing = std.testing;

/// Versions are named by their numbers.
const Vectors = struct {
    version: u32,
    cases: []const struct {
        stated: struct {
            default: ?u8,
            override: ?u8,
            pending: ?struct { version: u8, atUnixMs: u64 },
            versions: []const u8,
        },
        production: u8,
        boots: []const struct { unixMs: u64, production: u8 },
    },
};

fn versionId(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn idOf(number: ?u8) ?base.Uuid {
    return if (number) |known| versionId(known) else null;
}

fn macOf(number: u8) base.Mac {
    return .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } };
}

/// A version of another vDisk, which no release of this one changes.
const other_version: desired_state.Version = .{
    .id = .fromRandom(@splat(99)),
    .number = 1,
    .sizeBytes = 512,
    .diskPath = "d",
    .commandLine = "",
};

const Site = struct {
    versions: [8]desired_state.Version,
    vdisks: [2]desired_state.Vdisk,
    devices: [3]desired_state.Device,
    entries: [2]desired_state.MenuEntry,
    menus: [1]desired_state.Menu,
    state: desired_state.DesiredState,

    fn init(site: *Site, numbers: []const u8, production: u8) void {
        for (numbers, site.versions[0..numbers.len]) |number, *version| version.* = .{
            .id = versionId(number),
            .number = number,
            .sizeBytes = 512,
            .diskPath = "d",
            .commandLine = "",
        };
        site.vdisks = .{
            .{
                .id = .fromRandom(@splat(101)),
                .name = "a",
                .versions = site.versions[0..numbers.len],
            },
            .{
                .id = .fromRandom(@splat(102)),
                .name = "b",
                .versions = &.{other_version},
                .defaultVersionId = other_version.id,
            },
        };
        const device: desired_state.Device = .{
            .id = .fromRandom(@splat(110)),
            .name = "follows",
            .mac = macOf(1),
            .versionId = versionId(production),
            .enabled = true,
        };
        site.devices = @splat(device);
        site.devices[1].mac = macOf(2);
        site.devices[1].versionId = other_version.id;
        site.devices[2].mac = macOf(3);
        site.devices[2].menuId = .fromRandom(@splat(120));
        site.entries = .{
            .{
                .kind = .version,
                .title = "Today's",
                .versionId = versionId(production),
                .followsVdisk = true,
            },
            .{ .kind = .version, .title = "This one", .versionId = versionId(production) },
        };
        site.menus = .{.{
            .id = .fromRandom(@splat(120)),
            .timeoutMs = 1000,
            .defaultEntry = 0,
            .entries = &site.entries,
        }};
        site.state = .{
            .edgeId = .fromRandom(@splat(103)),
            .organizationId = .fromRandom(@splat(104)),
            .siteId = .fromRandom(@splat(105)),
            .siteName = "",
            .incarnation = 1,
            .counter = 1,
            .unknownDevices = .boot,
            .vdisks = &site.vdisks,
            .devices = &site.devices,
            .menus = &site.menus,
            .powerOns = &.{},
        };
    }

    fn versionOf(site: *const Site, mac: base.Mac, unix_ms: u64) !base.Uuid {
        return (try site.decide(mac, unix_ms)).assignment.version_id;
    }

    fn decide(site: *const Site, mac: base.Mac, unix_ms: u64) !boot_policy.Target {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        const policy: boot_policy.BootPolicy = try .init(arena.allocator(), &site.state);
        return policy.decide(mac, unix_ms).target;
    }
};

test "all devices follow a release at its instant, as the control plane would decide" {
    const parsed = try std.json.parseFromSlice(Vectors, testing.allocator, @embedFile(
        "releases_vectors_json",
    ), .{
        .ignore_unknown_fields = true,
    });
    defer parsed.deinit();
    try testing.expectEqual(1, parsed.value.version);
    try testing.expect(parsed.value.cases.len > 30);
    var switch_count: u32 = 0;
    for (parsed.value.cases) |*case| {
        var site: Site = undefined;
        site.init(case.stated.versions, case.production);
        site.vdisks[0].defaultVersionId = idOf(case.stated.default);
        site.vdisks[0].overrideVersionId = idOf(case.stated.override);
        if (case.stated.pending) |pending| site.vdisks[0].pending =
            .{ .versionId = versionId(pending.version), .atUnixMs = pending.atUnixMs };
        for (case.boots) |boot| {
            switch_count += @intFromBool(boot.production != case.production);
            const expected = versionId(boot.production);
            // A registered device, an unknown one, and one with a menu.
            for ([_]u8{ 1, 9, 3 }) |number|
                try testing.expectEqual(expected, try site.versionOf(macOf(number), boot.unixMs));
            try testing.expectEqual(other_version.id, try site.versionOf(macOf(2), boot.unixMs));
            const menu = (try site.decide(macOf(3), boot.unixMs)).menu.?;
            try testing.expectEqual(expected, menu.choiceOf(0).start.version.version_id);
            try testing.expectEqual(
                versionId(case.production),
                menu.choiceOf(1).start.version.version_id,
            );
        }
    }
    try testing.expect(switch_count > 10);
}

test "a choice from a menu shown before a release starts the version released when it is made" {
    var site: Site = undefined;
    site.init(&.{ 1, 2 }, 1);
    site.vdisks[0].defaultVersionId = versionId(1);
    site.vdisks[0].pending = .{ .versionId = versionId(2), .atUnixMs = 1000 };
    const shown = (try site.decide(macOf(3), 999)).menu.?;
    const now = (try site.decide(macOf(3), 1000)).menu.?;
    const choice = now.choice(.{ .mark = shown.mark(), .entry = 0 }).?;
    try testing.expectEqual(versionId(2), choice.start.version.version_id);
    try testing.expectEqual(versionId(1), shown.choiceOf(0).start.version.version_id);
}

test "a release of an undescribed version is a missing version, not the previous one" {
    var site: Site = undefined;
    site.init(&.{1}, 1);
    site.vdisks[0].defaultVersionId = versionId(1);
    site.vdisks[0].pending = .{ .versionId = versionId(2), .atUnixMs = 1000 };
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const policy: boot_policy.BootPolicy = try .init(arena.allocator(), &site.state);
    for ([_]u8{ 1, 9 }) |number| {
        try testing.expectEqual(.target, std.meta.activeTag(policy.decide(macOf(number), 999)));
        try testing.expectEqual(.version_missing, std.meta.activeTag(
            policy.decide(macOf(number), 1000),
        ));
    }
}
