//! Decides which device boots what: from a verified desired state, or one disk for every device
//! (standalone). Consumers: DHCP, loaders and the stream's admission. Pure; a lookup costs one
//! binary search.

const std = @import("std");
const base = @import("base");
const assignments = @import("assignment.zig");
const BootMenu = @import("../loader/menu.zig");
const desired_state = @import("../uplink/desired_state.zig");
const PageLink = @import("../loader/page_link.zig");
const release = @import("release.zig");
const Tuning = @import("../target/tuning.zig");
const assert = std.debug.assert;

const DesiredState = desired_state.DesiredState;

pub const Target = struct {
    assignment: assignments.Assignment,
    /// One line of printable ASCII.
    command_line: []const u8,
    /// What the device shows first. `assignment` is then that of its default entry; where that
    /// entry has no version, the device's own.
    menu: ?BootMenu = null,
};

pub const Decision = union(enum) {
    target: Target,
    /// Not in the desired state, which tells edges to ignore such devices.
    unknown_device,
    /// The desired state says to send this device no answer.
    ignored_device,
    disabled,
    /// The desired state does not describe the device's version, or describes it in an unusable
    /// form.
    version_missing,
};

/// The edge that keeps those writes of a device that outlive its boot.
pub const WriteOwner = union(enum) {
    /// Undecided, or no such writes exist.
    any,
    own,
    other: *const desired_state.WriteOwnerEdge,
    /// No edge may: two edges might answer the device.
    none,
};

pub const BootPolicy = struct {
    source: union(enum) {
        /// No desired state yet: nothing boots.
        nothing,
        /// One disk for every device.
        standalone: Target,
        state: *const DesiredState,
    },
    /// Index of `state.devices`, sorted by MAC address.
    devices: []const Entry = &.{},
    /// `state.ignoredMacs`, sorted.
    ignored: []const u48 = &.{},

    const Entry = struct { mac: u48, index: u32 };

    pub const nothing: BootPolicy = .{ .source = .nothing };

    pub fn standalone(target: Target) BootPolicy {
        return .{ .source = .{ .standalone = target } };
    }

    /// The state and everything allocated from `arena` must outlive the policy. A MAC address that
    /// occurs twice belongs to the device that is listed first.
    pub fn init(
        arena: std.mem.Allocator,
        state: *const DesiredState,
    ) error{OutOfMemory}!BootPolicy {
        const entries = try arena.alloc(Entry, state.devices.len);
        for (entries, state.devices, 0..) |*entry, device, index|
            entry.* = .{ .mac = device.mac.toInt(), .index = @intCast(index) };
        base.sort(Entry, entries, {}, before);
        const ignored = try arena.alloc(u48, state.ignoredMacs.len);
        for (ignored, state.ignoredMacs) |*entry, mac| entry.* = mac.toInt();
        base.sort(u48, ignored, {}, std.sort.asc(u48));
        return .{ .source = .{ .state = state }, .devices = entries, .ignored = ignored };
    }

    /// Decides what a device boots. `unix_ms` is the edge's wall clock: releases up to it are
    /// effective whether or not the control plane has confirmed them.
    pub fn decide(policy: *const BootPolicy, mac: base.Mac, unix_ms: u64) Decision {
        switch (policy.source) {
            .nothing => return .unknown_device,
            .standalone => |target| return .{ .target = target },
            .state => |state| {
                // A registered device boots even if it is also ignored: whoever added it wants it
                // to boot.
                const index = policy.find(mac) orelse {
                    if (policy.isIgnored(mac)) return .ignored_device;
                    return switch (state.unknownDevices) {
                        .ignore => .unknown_device,
                        .boot => firstVersion(state, unix_ms),
                    };
                };
                const device = &state.devices[index];
                if (!device.enabled) return .disabled;
                return decideDevice(state, device, unix_ms);
            },
        }
    }

    /// Returns where a boot's page is; null: nobody has told this edge.
    pub fn linkOf(policy: *const BootPolicy, boot_id: base.Uuid) ?PageLink {
        return switch (policy.source) {
            .nothing, .standalone => null,
            .state => |state| .of(state.dashboardUrl, boot_id),
        };
    }

    /// Returns whether a device boots without being registered.
    pub fn bootsUnregistered(policy: *const BootPolicy, mac: base.Mac) bool {
        return switch (policy.source) {
            .nothing => false,
            .standalone => true,
            .state => |state| state.unknownDevices == .boot and
                policy.find(mac) == null and !policy.isIgnored(mac),
        };
    }

    fn isIgnored(policy: *const BootPolicy, mac: base.Mac) bool {
        return std.sort.binarySearch(u48, policy.ignored, mac.toInt(), orderOfNumbers) != null;
    }

    fn orderOfNumbers(wanted: u48, entry: u48) std.math.Order {
        return std.math.order(wanted, entry);
    }

    /// Returns the menu that this device shows under the current state.
    pub fn menuOf(policy: *const BootPolicy, mac: base.Mac, unix_ms: u64) ?BootMenu {
        return switch (policy.decide(mac, unix_ms)) {
            .target => |target| target.menu,
            else => null,
        };
    }

    /// Returns which edge may keep this device's writes.
    pub fn writeOwnerOf(policy: *const BootPolicy, mac: base.Mac) WriteOwner {
        const state = switch (policy.source) {
            .nothing, .standalone => return .any,
            .state => |state| state,
        };
        // Nobody has chosen an edge for an unregistered device.
        const index = policy.find(mac) orelse return if (state.siteEdges == null) .any else .none;
        const home = &state.homeEdges[state.devices[index].home orelse return .any];
        return if (home.id.eql(state.edgeId)) .own else .{ .other = home };
    }

    /// Returns the only edge that keeps the device's writes; null: it has no such writes.
    pub fn homeOf(policy: *const BootPolicy, mac: base.Mac) ?base.Uuid {
        return switch (policy.writeOwnerOf(mac)) {
            .any, .none => null,
            .own => policy.source.state.edgeId,
            .other => |home| home.id,
        };
    }

    /// Tells whether a write layer of this device may be created here; true where the state names
    /// no owner.
    pub fn ownsWritesOf(policy: *const BootPolicy, device_id: base.Uuid) bool {
        const state = switch (policy.source) {
            .nothing, .standalone => return true,
            .state => |state| state,
        };
        for (state.devices) |*device| if (device.id.eql(device_id))
            return if (device.home) |home| state.homeEdges[home].id.eql(state.edgeId) else true;
        return false;
    }

    /// Returns the registered device; null also where no control plane describes devices.
    pub fn deviceOf(policy: *const BootPolicy, mac: base.Mac) ?*const desired_state.Device {
        return switch (policy.source) {
            .nothing, .standalone => null,
            .state => |state| &state.devices[policy.find(mac) orelse return null],
        };
    }

    /// Returns the assignment with the settings of the device's next boot: those of a trial that
    /// has not ended, or those of its collection. An edge that does not know all settings of a
    /// trial leaves it alone: no boot may seem to have had settings that it had not.
    pub fn tuned(
        policy: *const BootPolicy,
        given: assignments.Assignment,
        mac: base.Mac,
        unix_ms: u64,
    ) assignments.Assignment {
        var assignment = given;
        const device = policy.deviceOf(mac) orelse return assignment;
        const state = policy.source.state;
        for (state.trials) |*trial| {
            if (!trial.deviceId.eql(device.id) or unix_ms >= trial.untilUnixMs) continue;
            assignment.tuning = Tuning.ofAll(state.tunings[trial.tuning]) orelse continue;
            assignment.trial = trial.id;
            return assignment;
        }
        if (device.tuning) |index| assignment.tuning = .ofKnown(state.tunings[index]);
        assert(assignment.trial == null);
        return assignment;
    }

    fn find(policy: *const BootPolicy, mac: base.Mac) ?u32 {
        const wanted = mac.toInt();
        const at = std.sort.lowerBound(Entry, policy.devices, wanted, compare);
        if (at == policy.devices.len or policy.devices[at].mac != wanted) return null;
        return policy.devices[at].index;
    }

    fn compare(wanted: u48, entry: Entry) std.math.Order {
        return std.math.order(wanted, entry.mac);
    }

    fn before(_: void, a: Entry, b: Entry) bool {
        if (a.mac != b.mac) return a.mac < b.mac;
        return a.index < b.index;
    }
};

fn decideDevice(
    state: *const DesiredState,
    device: *const desired_state.Device,
    unix_ms: u64,
) Decision {
    const own_id = release.versionAt(state, device.versionId, unix_ms);
    const menu = BootMenu.of(state, device, unix_ms) orelse {
        const target = targetOfVersion(state, own_id, device) orelse return .version_missing;
        return .{ .target = target };
    };
    const version_id = menu.versionOf(menu.defaultEntry()) orelse own_id;
    // This edge may have the version of another entry.
    var target = targetOfVersion(state, version_id, device) orelse Target{
        .assignment = assignments.ofMissing(state, version_id, device),
        .command_line = "",
    };
    target.menu = menu;
    return .{ .target = target };
}

/// Returns null where the state does not describe the version, or describes it in an unusable form.
fn targetOfVersion(
    state: *const DesiredState,
    version_id: base.Uuid,
    device: *const desired_state.Device,
) ?Target {
    return .{
        .assignment = assignments.ofVersion(state, version_id, device) orelse return null,
        .command_line = assignments.describedVersion(state, version_id).?.commandLine,
    };
}

fn firstVersion(state: *const DesiredState, unix_ms: u64) Decision {
    if (state.vdisks.len == 0 or state.vdisks[0].versions.len == 0) return .version_missing;
    const first = &state.vdisks[0];
    const wanted_id = release.versionAt(state, first.versions[0].id, unix_ms);
    const wanted = for (first.versions) |*version| {
        if (version.id.eql(wanted_id)) break version;
    } else return .version_missing;
    return .{ .target = .{
        .assignment = assignments.of(first, wanted, null, state.bootProgramSet) orelse
            return .version_missing,
        .command_line = wanted.commandLine,
    } };
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn testMac(number: u8) base.Mac {
    return .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } };
}

const test_versions = [_]desired_state.Version{
    .{
        .id = uuid(1),
        .number = 1,
        .sizeBytes = 512,
        .diskPath = "d",
        .kernelPath = "k",
        .commandLine = "quiet",
    },
    .{
        .id = uuid(2),
        .number = 2,
        .sizeBytes = 512,
        .diskPath = "d",
        .commandLine = "quiet\nshell",
    },
};

const test_vdisks =
    [_]desired_state.Vdisk{.{ .id = uuid(30), .name = "disk", .versions = &test_versions }};

const test_devices = [_]desired_state.Device{
    .{ .id = uuid(13), .name = "c", .mac = testMac(3), .versionId = uuid(1), .enabled = false },
    .{ .id = uuid(12), .name = "b", .mac = testMac(2), .versionId = uuid(2), .enabled = true },
    .{ .id = uuid(11), .name = "a", .mac = testMac(1), .versionId = uuid(1), .enabled = true },
    .{ .id = uuid(15), .name = "e", .mac = testMac(1), .versionId = uuid(2), .enabled = true },
    .{ .id = uuid(14), .name = "d", .mac = testMac(4), .versionId = uuid(9), .enabled = true },
};

fn testState(unknown: desired_state.UnknownDevices) DesiredState {
    return .{
        .edgeId = uuid(20),
        .organizationId = uuid(21),
        .siteId = uuid(22),
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = unknown,
        .vdisks = &test_vdisks,
        .devices = &test_devices,
        .powerOns = &.{},
    };
}

test "each device gets the version that the desired state assigns" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const state = testState(.ignore);
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    const target = policy.decide(testMac(1), 0).target;
    try testing.expect(target.assignment.device_id.?.eql(uuid(11)));
    try testing.expect(target.assignment.version_id.eql(uuid(1)));
    try testing.expect(target.assignment.loader_files.kernel);
    try testing.expect(!target.assignment.loader_files.initrd);
    try testing.expectEqual(.version_missing, std.meta.activeTag(policy.decide(testMac(2), 0)));
    try testing.expectEqual(.disabled, std.meta.activeTag(policy.decide(testMac(3), 0)));
    try testing.expectEqual(.version_missing, std.meta.activeTag(policy.decide(testMac(4), 0)));
    try testing.expectEqual(.unknown_device, std.meta.activeTag(policy.decide(testMac(5), 0)));
}

test "only the device that is assigned to write a version writes it" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.ignore);
    const devices = [_]desired_state.Device{
        .{
            .id = uuid(11),
            .name = "a",
            .mac = testMac(1),
            .versionId = uuid(1),
            .enabled = true,
            .writes = true,
        },
        .{ .id = uuid(12), .name = "b", .mac = testMac(2), .versionId = uuid(1), .enabled = true },
    };
    state.devices = &devices;
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    try testing.expect(policy.decide(testMac(1), 0).target.assignment.writes);
    try testing.expect(!policy.decide(testMac(2), 0).target.assignment.writes);
    // The same version, chosen in a menu.
    try testing.expect(!targetOfVersion(&state, uuid(1), &devices[1]).?.assignment.writes);
    var other = devices[0];
    other.versionId = uuid(2);
    try testing.expect(!targetOfVersion(&state, uuid(1), &other).?.assignment.writes);
}

test "the named edge keeps a device's writes, and none does for unknown devices at several edges" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.boot);
    const devices = [_]desired_state.Device{
        .{
            .id = uuid(11),
            .name = "a",
            .mac = testMac(1),
            .versionId = uuid(1),
            .enabled = true,
            .home = 1,
        },
        .{
            .id = uuid(12),
            .name = "b",
            .mac = testMac(2),
            .versionId = uuid(1),
            .enabled = true,
            .home = 0,
        },
        .{ .id = uuid(13), .name = "c", .mac = testMac(3), .versionId = uuid(1), .enabled = true },
    };
    state.devices = &devices;
    state.homeEdges =
        &.{ .{ .id = uuid(99), .name = "north" }, .{ .id = state.edgeId, .name = "south" } };
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    try testing.expectEqual(.own, std.meta.activeTag(policy.writeOwnerOf(testMac(1))));
    try testing.expectEqualStrings("north", policy.writeOwnerOf(testMac(2)).other.name);
    try testing.expectEqual(.any, std.meta.activeTag(policy.writeOwnerOf(testMac(3))));
    try testing.expectEqual(.any, std.meta.activeTag(policy.writeOwnerOf(testMac(9))));
    state.siteEdges = .{ .key = "", .edges = &.{} };
    try testing.expectEqual(.none, std.meta.activeTag(policy.writeOwnerOf(testMac(9))));
}

test "ignored devices get no answer, even where unknown devices boot, until they are registered" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.boot);
    state.ignoredMacs = &.{ testMac(9), testMac(1), testMac(7) };
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    for ([_]u8{ 7, 9 }) |number|
        try testing.expectEqual(.ignored_device, std.meta.activeTag(
            policy.decide(testMac(number), 0),
        ));
    for ([_]u8{ 1, 8 }) |number|
        try testing.expectEqual(.target, std.meta.activeTag(policy.decide(testMac(number), 0)));
}

test "unknown devices boot the first version where the site allows it" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const state = testState(.boot);
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    const target = policy.decide(testMac(5), 0).target;
    try testing.expectEqual(null, target.assignment.device_id);
    try testing.expect(target.assignment.version_id.eql(uuid(1)));
}

test "without a desired state nothing boots, in standalone mode everything does" {
    try testing.expectEqual(
        .unknown_device,
        std.meta.activeTag(BootPolicy.nothing.decide(testMac(1), 0)),
    );
    const policy: BootPolicy =
        .standalone(.{ .assignment = .{ .version_id = uuid(7) }, .command_line = "" });
    try testing.expect(policy.decide(testMac(77), 0).target.assignment.version_id.eql(uuid(7)));
}

test "a device's writes are made here unless another edge is named, and never for an unknown one" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.boot);
    var devices = test_devices;
    devices[0].home = 0;
    devices[1].home = 1;
    state.devices = &devices;
    state.homeEdges =
        &.{ .{ .id = uuid(99), .name = "north" }, .{ .id = state.edgeId, .name = "south" } };
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    try testing.expect(!policy.ownsWritesOf(devices[0].id));
    try testing.expect(policy.ownsWritesOf(devices[1].id));
    try testing.expect(policy.ownsWritesOf(devices[2].id));
    try testing.expect(!policy.ownsWritesOf(uuid(77)));
    try testing.expect(BootPolicy.nothing.ownsWritesOf(uuid(77)));
}

test "a boot has the settings of its device's trial until that ends, and then its collection's" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.ignore);
    var devices = test_devices;
    devices[2].tuning = 0;
    state.devices = &devices;
    state.tunings = &.{ &.{ "codec=off", "colour=red" }, &.{"read-limit=8k"}, &.{"colour=red"} };
    const trials = [_]desired_state.Trial{
        .{ .id = uuid(70), .deviceId = uuid(13), .tuning = 1, .untilUnixMs = 1000 },
        // Its settings are not known here.
        .{ .id = uuid(71), .deviceId = uuid(11), .tuning = 2, .untilUnixMs = 1000 },
        .{ .id = uuid(72), .deviceId = uuid(11), .tuning = 1, .untilUnixMs = 1000 },
    };
    state.trials = &trials;
    const policy: BootPolicy = try .init(arena.allocator(), &state);
    const given = policy.decide(testMac(1), 0).target.assignment;
    const during = policy.tuned(given, testMac(1), 999);
    try testing.expectEqual(Tuning{ .read_limit = 8 << 10 }, during.tuning);
    try testing.expect(during.trial.?.eql(uuid(72)));
    const after = policy.tuned(given, testMac(1), 1000);
    try testing.expectEqual(Tuning{ .codec = .off }, after.tuning);
    try testing.expectEqual(null, after.trial);
    try testing.expectEqualDeep(given, policy.tuned(given, testMac(9), 0));
    try testing.expectEqualDeep(given, BootPolicy.nothing.tuned(given, testMac(1), 0));
}

test "a site without versions has none for unknown devices" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var state = testState(.boot);
    const empty = [_]desired_state.Vdisk{.{ .id = uuid(30), .name = "disk", .versions = &.{} }};
    for ([_][]const desired_state.Vdisk{ &.{}, &empty }) |vdisks| {
        state.vdisks = vdisks;
        const policy: BootPolicy = try .init(arena.allocator(), &state);
        try testing.expectEqual(.version_missing, std.meta.activeTag(policy.decide(testMac(9), 0)));
    }
}
