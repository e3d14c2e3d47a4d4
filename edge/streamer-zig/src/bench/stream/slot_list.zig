//! Lists the completed reads of a device.

const std = @import("std");
const assert = std.debug.assert;

pub const SlotList = struct {
    slots: [most]u8 = undefined,
    count: u8 = 0,

    /// Most reads in flight of a device.
    pub const most = 64;

    pub fn add(list: *SlotList, slot: u8) void {
        assert(list.count < most);
        list.slots[list.count] = slot;
        list.count += 1;
    }

    pub fn slice(list: *const SlotList) []const u8 {
        return list.slots[0..list.count];
    }
};
