//! The boot profiles of an edge's versions as reported with the store's inventory
//! (packages/proto/UPLINK.md, "POST /edge/v1/store"). Pure.

const std = @import("std");
const base = @import("base");
const BootProfile = @import("profile.zig");
const assert = std.debug.assert;

pub const ProfileInventory = @This();

/// For all versions.
pub const profiles_max = 256;
/// For one version: eight classes of hardware, and all boots.
const of_version_max = 9;

summaries: [profiles_max]Summary = undefined,
count: u16 = 0,

/// One profile.
pub const Summary = struct {
    version_id: base.Uuid,
    key: u64,
    hardware: base.UntrustedText,
    boots: u32,
    /// Bytes that are sent to devices.
    read_ahead_bytes: u64,
    units: u16,
    /// 0: carried over from another version, and not learned from yet.
    learned_unix_ms: u64,

    pub fn of(named: *const BootProfile.Named, profile: *const BootProfile) Summary {
        return .{
            .version_id = named.version,
            .key = named.class.key,
            .hardware = named.class.name,
            .boots = profile.boots,
            .read_ahead_bytes = profile.handedBytes(),
            .units = profile.count,
            .learned_unix_ms = profile.learned_unix_ms,
        };
    }
};

pub fn slice(inventory: *const ProfileInventory) []const Summary {
    return inventory.summaries[0..inventory.count];
}

/// Replaces the summary of the same profile; one without units is removed. Returns false if the
/// capacity is used up.
pub fn put(inventory: *ProfileInventory, summary: *const Summary) bool {
    if (inventory.find(summary.version_id, summary.key)) |known| {
        if (summary.units > 0) {
            known.* = summary.*;
        } else {
            assert(inventory.count > 0);
            inventory.count -= 1;
            known.* = inventory.summaries[inventory.count];
        }
        return true;
    }
    if (summary.units == 0) return true;
    if (inventory.count == profiles_max) return false;
    assert(inventory.count < profiles_max);
    inventory.summaries[inventory.count] = summary.*;
    inventory.count += 1;
    return true;
}

pub fn find(inventory: *ProfileInventory, version_id: base.Uuid, key: u64) ?*Summary {
    for (inventory.summaries[0..inventory.count]) |*known| {
        if (known.key == key and known.version_id.eql(version_id)) return known;
    }
    return null;
}

pub fn hashInto(
    inventory: *const ProfileInventory,
    sum: *std.hash.Wyhash,
    version_id: base.Uuid,
) void {
    for (inventory.slice()) |*known| {
        if (!known.version_id.eql(version_id)) continue;
        for ([_]u64{
            known.key,
            known.boots,
            known.read_ahead_bytes,
            known.units,
            known.learned_unix_ms,
        }) |value|
            sum.update(std.mem.asBytes(&value));
    }
}

/// Writes the member `bootProfiles` of a stored version, preceded by a comma; nothing if there is
/// no profile.
pub fn write(
    inventory: *const ProfileInventory,
    writer: *std.Io.Writer,
    version_id: base.Uuid,
) std.Io.Writer.Error!void {
    var count: u8 = 0;
    for (inventory.slice()) |*known| {
        if (!known.version_id.eql(version_id) or count == of_version_max) continue;
        try writer.writeAll(if (count == 0) ",\"bootProfiles\":[" else ",");
        count += 1;
        try writer.print("{{\"hardware\":{f},\"boots\":{d},\"readAheadBytes\":{d},\"units\":{d}", .{
            std.json.fmt(known.hardware.slice(), .{}),
            known.boots,
            known.read_ahead_bytes,
            known.units,
        });
        if (known.learned_unix_ms > 0)
            try writer.print(",\"learnedUnixMs\":{d}", .{known.learned_unix_ms});
        try writer.writeByte('}');
    }
    if (count > 0) try writer.writeByte(']');
}

const testing = std.testing;

test "each profile has one entry up to the capacity, and an empty profile has none" {
    const inventory = try testing.allocator.create(ProfileInventory);
    defer testing.allocator.destroy(inventory);
    inventory.* = .{};
    const version: base.Uuid = .fromRandom(@splat(1));
    var summary: Summary =
        .{
            .version_id = version,
            .key = 0,
            .hardware = .init("a\"b"),
            .boots = 1,
            .read_ahead_bytes = 4096,
            .units = 1,
            .learned_unix_ms = 7,
        };
    try testing.expect(inventory.put(&summary));
    summary.boots = 2;
    try testing.expect(inventory.put(&summary));
    for (1..profiles_max) |key| {
        summary.key = key;
        summary.learned_unix_ms = 0;
        try testing.expect(inventory.put(&summary));
    }
    summary.key = profiles_max;
    try testing.expect(!inventory.put(&summary));
    summary.units = 0;
    for (2..profiles_max) |key| {
        summary.key = key;
        try testing.expect(inventory.put(&summary));
    }
    var buffer: [512]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try inventory.write(&writer, version);
    try testing.expectEqualStrings(
        ",\"bootProfiles\":[{\"hardware\":\"a\\\"b\",\"boots\":2,\"readAheadBytes\":4096,\"units\":1,\"learnedUnixMs\":7}," ++
            "{\"hardware\":\"a\\\"b\",\"boots\":2,\"readAheadBytes\":4096,\"units\":1}]",
        writer.buffered(),
    );
}
