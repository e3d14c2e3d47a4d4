//! How large the edge's tables are: computed at the start from `--devices-max` or from the memory
//! of the machine (docs/decisions/0044-tables-sized-at-start.md). Each registered device has slots
//! for what it needs: the boot that it runs in and one candidate beside it, a session, a write
//! cache, and the site's claims. Unregistered devices share a part apart from those.

const std = @import("std");
const core = @import("core");
const Complaint = @import("complaint.zig");

pub const TableSizes = @This();

devices_max: u32,
/// Boots of unregistered devices.
unregistered_max: u32,
use: Use,

pub const devices_most = 16_384;
pub const devices_least = 64;
/// Of the memory, for tables of the default size; the page cache of images needs the most.
const default_share = 8;
/// Of the memory, for tables that are asked for.
const largest_share = 2;

pub const Use = struct {
    /// Without a control plane nobody is registered.
    is_alone: bool,
    /// Each shard has a copy of the sessions.
    shards: u16,
};

/// `wanted`: of `--devices-max`; null: as many as fit into a share of the memory. `memory_bytes`:
/// null if the system does not tell.
pub fn choose(
    wanted: ?u32,
    memory_bytes: ?u64,
    use: Use,
    complaint: *Complaint,
) Complaint.Error!TableSizes {
    const memory = memory_bytes orelse std.math.maxInt(u64);
    const devices = wanted orelse return .of(fitting(memory / default_share, use), use);
    const sizes: TableSizes = .of(devices, use);
    const needed = sizes.bytes();
    if (needed <= memory / largest_share) return sizes;
    return complaint.set(
        "--devices-max {d} needs up to {d} MiB of memory, and this machine has {d} MiB, of which " ++
            "the tables may take half: that is enough for {d} devices.",
        .{ devices, needed >> 20, memory >> 20, fitting(memory / largest_share, use) },
    );
}

fn of(devices: u32, use: Use) TableSizes {
    return .{
        .devices_max = devices,
        .use = use,
        .unregistered_max = if (use.is_alone)
            2 * devices
        else
            std.math.clamp(devices / 4, devices_least, 1024),
    };
}

fn fitting(limit_bytes: u64, use: Use) u32 {
    var devices: u32 = devices_most;
    while (devices > devices_least and of(devices, use).bytes() > limit_bytes)
        devices -= devices_least;
    return devices;
}

/// A device's boot and one candidate, and the boots that unregistered devices share.
pub fn boots(sizes: TableSizes) u32 {
    if (sizes.use.is_alone) return sizes.unregistered_max;
    return 2 * sizes.devices_max + sizes.unregistered_max;
}

/// Each session may have a write cache.
pub fn sessions(sizes: TableSizes) u16 {
    const others = if (sizes.use.is_alone) 0 else sizes.unregistered_max;
    return @intCast(sizes.devices_max + others);
}

/// What the tables take when all slots are used; those that never were take less. A write cache at
/// the edge takes its memory when it is opened.
pub fn bytes(sizes: TableSizes) u64 {
    const Server = core.stream.Server;
    const of_boot = @sizeOf(core.boot.Boot) + index_bytes + @sizeOf(core.site.PeerTable.OwnClaim) +
        @sizeOf(core.site.PeerTable.OtherClaim);
    const of_session = (@sizeOf(Server.Session) + @sizeOf(Server.Counter) + index_bytes) *
        @as(u64, sizes.use.shards);
    return @as(u64, of_boot) * sizes.boots() + of_session * sizes.sessions();
}

/// Four indices at most, of 24 to 40 bytes a slot.
const index_bytes = 4 * 40;

const testing = std.testing;
const managed: Use = .{ .is_alone = false, .shards = 1 };

test "a machine with much memory has slots for 16,384 devices, a small one for fewer" {
    var complaint: Complaint = .{};
    const large = try choose(null, 64 << 30, managed, &complaint);
    try testing.expectEqual(devices_most, large.devices_max);
    try testing.expectEqual(2 * devices_most + 1024, large.boots());
    try testing.expectEqual(devices_most + 1024, large.sessions());
    const small = try choose(null, 512 << 20, managed, &complaint);
    try testing.expect(small.devices_max >= 512 and small.devices_max < devices_most);
    try testing.expect(small.bytes() <= 64 << 20);
    // Of no machine are none served, and what the system does not tell limits nothing.
    const tiny = try choose(null, 1 << 20, managed, &complaint);
    try testing.expectEqual(devices_least, tiny.devices_max);
    const unknown = try choose(null, null, managed, &complaint);
    try testing.expectEqual(devices_most, unknown.devices_max);
}

test "what was asked for is taken, or refused with the number that fits" {
    var complaint: Complaint = .{};
    const wanted = try choose(1000, 1 << 30, managed, &complaint);
    try testing.expectEqual(1000, wanted.devices_max);
    try testing.expectEqual(250, wanted.unregistered_max);
    try testing.expectError(
        error.Wrong,
        choose(devices_most, 64 << 20, managed, &complaint),
    );
    try testing.expect(std.mem.find(u8, complaint.text(), "enough for ") != null);
}

test "without a control plane every device is an unregistered one, and has the same slots" {
    var complaint: Complaint = .{};
    const use: Use = .{ .is_alone = true, .shards = 4 };
    const sizes = try choose(500, 4 << 30, use, &complaint);
    try testing.expectEqual(1000, sizes.boots());
    try testing.expectEqual(1000, sizes.unregistered_max);
    try testing.expectEqual(500, sizes.sessions());
}
