//! What a simulated edge's disk keeps when its machine loses power: boots as they were last synced,
//! of later records some, power orders and the resumption key.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const StreamSite = @import("site.zig");
const Boot = core.boot.Boot;
const BoundOrder = core.site.PowerOrders.BoundOrder;

pub const Journal = @This();

/// The newest boot of each device, and earlier ones that are not forgotten yet.
const boots_max = 3 * StreamSite.boots_max;
const orders_max = 256;
const unsynced_max = 16;

boots: base.BoundedArray(Boot, boots_max) = .empty,
/// The latest states that are not on the disk yet.
unsynced: base.BoundedArray(Boot, unsynced_max) = .empty,
orders: base.BoundedArray(BoundOrder, orders_max) = .empty,
resumption_key: [32]u8,

pub fn find(journal: *const Journal, id: base.Uuid) ?*const Boot {
    for (journal.unsynced.constSlice()) |*boot| if (boot.identity.id.eql(id)) return boot;
    for (journal.boots.constSlice()) |*boot| if (boot.identity.id.eql(id)) return boot;
    return null;
}

/// The system writes on its own when much waits.
pub fn write(journal: *Journal, boot: *const Boot) void {
    for (journal.unsynced.slice()) |*later| if (later.identity.id.eql(boot.identity.id)) {
        later.* = boot.*;
        return;
    };
    if (journal.unsynced.isFull()) journal.sync();
    journal.unsynced.appendAssumeCapacity(boot.*);
}

pub fn sync(journal: *Journal) void {
    for (journal.unsynced.constSlice()) |*boot| journal.keep(boot);
    journal.unsynced.clear();
}

/// The machine loses power: each record that was not synced is on the disk or not.
pub fn crash(
    journal: *Journal,
    prng: *base.Prng,
    context: anytype,
    comptime onLost: fn (@TypeOf(context), *const Boot) void,
) void {
    for (journal.unsynced.constSlice()) |*boot| {
        if (prng.chance(1, 2)) journal.keep(boot) else onLost(context, boot);
    }
    journal.unsynced.clear();
}

fn keep(journal: *Journal, boot: *const Boot) void {
    for (journal.boots.slice()) |*kept| if (kept.identity.id.eql(boot.identity.id)) {
        kept.* = boot.*;
        return;
    };
    if (journal.boots.isFull()) removeAt(Boot, boots_max, &journal.boots, 0);
    journal.boots.appendAssumeCapacity(boot.*);
}

/// The device has begun another boot: other edges learn of it before they could continue this one.
pub fn forgetEarlier(journal: *Journal, mac: base.Mac, latest: base.Uuid) void {
    forgetIn(boots_max, &journal.boots, mac, latest);
    forgetIn(unsynced_max, &journal.unsynced, mac, latest);
}

/// Forgets one boot.
pub fn forget(journal: *Journal, id: base.Uuid) void {
    for (journal.unsynced.constSlice(), 0..) |*boot, index| if (boot.identity.id.eql(id)) {
        removeAt(Boot, unsynced_max, &journal.unsynced, @intCast(index));
        break;
    };
    for (journal.boots.constSlice(), 0..) |*boot, index| if (boot.identity.id.eql(id)) {
        removeAt(Boot, boots_max, &journal.boots, @intCast(index));
        break;
    };
}

fn forgetIn(
    comptime capacity: u32,
    list: *base.BoundedArray(Boot, capacity),
    mac: base.Mac,
    latest: base.Uuid,
) void {
    var index: u32 = 0;
    while (index < list.count) {
        const identity = &list.buffer[index].identity;
        if (identity.mac.eql(mac) and !identity.id.eql(latest))
            removeAt(Boot, capacity, list, index)
        else
            index += 1;
    }
}

/// Keeps the order, in which boots and orders are restored.
fn removeAt(
    comptime T: type,
    comptime capacity: u32,
    list: *base.BoundedArray(T, capacity),
    index: u32,
) void {
    const items = list.slice();
    std.mem.copyForwards(T, items[index .. items.len - 1], items[index + 1 ..]);
    list.count -= 1;
}

pub fn load(journal: *const Journal, boots: *core.boot.Table, now_us: u64) void {
    for (journal.boots.constSlice()) |kept| {
        var boot = kept;
        boot.onRestart(now_us);
        _ = boots.insert(boot, now_us) catch unreachable;
    }
}

pub fn writeOrder(journal: *Journal, bound: BoundOrder) void {
    if (journal.orders.isFull()) removeAt(BoundOrder, orders_max, &journal.orders, 0);
    journal.orders.appendAssumeCapacity(bound);
}
