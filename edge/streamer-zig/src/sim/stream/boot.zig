//! One boot of a device in the stream's simulation, as both ends know it: its identity, what it is
//! served, and what may end it.

const std = @import("std");
const base = @import("base");
const link = @import("link.zig");
const content = @import("content.zig");

pub const StreamBoot = @This();

/// Sectors of the largest disk.
pub const sectors_max = 1024;
/// Addresses that a device has in one boot.
const addresses_max = 48;
/// Orders that it gets.
pub const orders_max = 8;
const discards_max = 16;

/// Different for each boot of a run; not 0.
number: u32 = 0,
id: base.Uuid = .zero,
token: [16]u8 = @splat(0),
version: Version = .{ .number = 0, .sectors = 0 },
class: link.Class = .device_ram,
/// The edge where it began: it alone knows the token, and keeps what is written.
home: u8 = 0,
/// Marks the sectors that the boot writes; a persistent write cache has one writer in all boots.
writer: u32 = 0,
/// Of the write cache; null: the size of the disk.
limit_bytes: ?u64 = null,
/// What the edge does when the write cache is full.
is_stopped_when_full: bool = false,
is_full: bool = false,
orders_given: base.BoundedArray([16]u8, orders_max) = .empty,
orders_taken: base.BoundedArray([16]u8, orders_max) = .empty,
addresses: base.BoundedArray(base.Endpoint, addresses_max) = .empty,
/// Discards whose end the device has not heard: their packets have no bytes that name them.
discards: base.BoundedArray(Discard, discards_max) = .empty,
/// Why the edge may have ended it.
ends: std.EnumSet(End) = .empty,

pub const End = enum { keys_lost, cache_lost, version_missing };

pub const Discard = struct { first: u32, count: u32, serial: u32 };

pub const Version = struct {
    number: u32,
    sectors: u32,

    pub fn id(version: Version) base.Uuid {
        var bytes: [16]u8 = @splat(0xdd);
        std.mem.writeInt(u32, bytes[0..4], version.number, .big);
        return .{ .bytes = bytes };
    }

    pub fn stampAt(version: Version, _: u64) u64 {
        return 1 << 63 | @as(u64, version.number) << 32;
    }
};

/// The document of the boot profile; only its bytes matter here.
pub const profile_sectors = 6;
pub const Profile = struct {
    pub fn stampAt(_: Profile, _: u64) u64 {
        return 0x70726f66696c65;
    }
};

/// Returns what a sector holds after the write with this serial number. 0: no write; odd: a
/// discard.
pub fn stampOf(boot: *const StreamBoot, serial: u32) u64 {
    if (serial == 0) return boot.version.stampAt(0);
    if (serial % 2 == 1) return content.zeros;
    return @as(u64, boot.writer) << 32 | serial;
}

/// Returns the serial number of the oldest discard of this range in progress; null: there is none.
pub fn discardSerial(boot: *const StreamBoot, first: u32, count: u32) ?u32 {
    var oldest: ?u32 = null;
    for (boot.discards.constSlice()) |discard| {
        if (discard.first == first and discard.count == count)
            oldest = @min(oldest orelse discard.serial, discard.serial);
    }
    return oldest;
}

/// The write cache is full, and the edge has stopped the device's disk.
pub fn isStopped(boot: *const StreamBoot) bool {
    return boot.is_full and boot.is_stopped_when_full;
}

pub fn forgetDiscard(boot: *StreamBoot, serial: u32) void {
    for (boot.discards.constSlice(), 0..) |discard, index| if (discard.serial == serial) {
        _ = boot.discards.swapRemove(@intCast(index));
        return;
    };
}

pub fn isAddress(boot: *const StreamBoot, address: base.Endpoint) bool {
    // The newest is the most likely.
    var index = boot.addresses.count;
    while (index > 0) {
        index -= 1;
        if (boot.addresses.buffer[index].eql(address)) return true;
    }
    return false;
}

pub fn hasOrder(list: *const base.BoundedArray([16]u8, orders_max), id: [16]u8) bool {
    for (list.constSlice()) |known| if (std.mem.eql(u8, &known, &id)) return true;
    return false;
}
